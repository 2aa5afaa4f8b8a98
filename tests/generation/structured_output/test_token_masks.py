"""Masks over a batch: rows that are held to something among rows that are not, each as if it were alone."""

import math
import re
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat, Generate
from lmwire_protocol.formats import ChoiceFormat, RegexFormat
from lmwire_protocol.messages import Message
from lmwire_worker.generation.structured_output import token_masks
from lmwire_worker.generation.structured_output.constraint import Constraint
from lmwire_worker.generation.structured_output.token_masks import TokenMasks
from lmwire_worker.tool_parsers import FORMATS
from support.runners.constrained import Speaker, allowed_tokens, tool, write_tokenizer


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Speaker:
    return Speaker(write_tokenizer(tmp_path_factory.mktemp("model"), ["<think>", "</think>"]))


def generate(pattern: str) -> Generate:
    return Generate(prompt="x", format=RegexFormat(pattern))


def chat(**fields: Any) -> Chat:
    return Chat(messages=[Message(role="user", content="x")], **fields)


def tokens(speaker: Speaker, text: str) -> list[int]:
    return speaker.tokenizer.encode(text, add_special_tokens=False)


def allowed(speaker: Speaker, constraint: Constraint, newest: int = 0) -> set[int]:
    """Return the tokens that a row alone may generate next."""
    (row,) = allowed_tokens(TokenMasks([constraint]), [newest], speaker.size)
    return set(np.flatnonzero(row).tolist())


def test_rows_without_a_constraint_keep_their_logits(speaker: Speaker) -> None:
    logits = mx.random.normal((3, speaker.size))
    before = np.array(logits)
    after = np.array(TokenMasks([None, speaker.constraint(generate("a")), None])(logits, mx.array([0, 0, 0])))
    assert (after[[0, 2]] == before[[0, 2]]).all()
    (letter,) = tokens(speaker, "a")
    assert np.flatnonzero(np.isfinite(after[1])).tolist() == [letter]
    assert after[1, letter] == before[1, letter]
    assert (np.array(logits) == before).all(), "log-probabilities are of what came in"


def test_a_constrained_row_gets_the_same_tokens_alone_and_in_a_batch(speaker: Speaker) -> None:
    requests = [generate("[a-c]{3,9}"), generate("(x|yy)*z"), Generate(prompt="x", format=ChoiceFormat(["ka", "kalo"]))]
    alone = [speaker.say(request, seed) for seed, request in enumerate(requests)]
    assert speaker.follow([speaker.constraint(request) for request in requests], range(3)) == alone


@pytest.mark.parametrize("patience", [-1.0, math.inf], ids=["by all cores", "one by one"])
def test_masks_filled_by_one_or_several_threads_are_the_same(
    speaker: Speaker, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [generate("[a-f]{12}"), chat(reasoning_budget=3), generate("(x|yy){4}z")]
    alone = [speaker.say(request, seed) for seed, request in enumerate(requests)]
    monkeypatch.setattr(token_masks, "SERIAL_FILL_S", patience)
    assert speaker.follow([speaker.constraint(request) for request in requests], range(3)) == alone


def test_forked_constraints_are_independent(speaker: Speaker) -> None:
    request = generate("[a-f]{12}")
    first = speaker.constraint(request)
    together = speaker.follow([first.fork(), first, first.fork()], [1, 2, 3])
    assert together == [speaker.say(request, seed) for seed in (1, 2, 3)]
    assert len(set(together)) == 3


def test_end_tokens_are_allowed_exactly_where_the_grammar_may_end(speaker: Speaker) -> None:
    constraint = speaker.constraint(generate("ab?"))
    first, second = tokens(speaker, "a") + tokens(speaker, "b")
    assert allowed(speaker, constraint) == {first}
    assert allowed(speaker, constraint, first) == {second} | speaker.ends
    assert allowed(speaker, constraint, second) == speaker.ends


def test_a_finished_answer_may_end_again_and_again(speaker: Speaker) -> None:
    constraint = speaker.constraint(generate("a"))
    (end,) = speaker.ends
    for newest in (0, *tokens(speaker, "a"), end, end):
        allowed(speaker, constraint, newest)
    assert allowed(speaker, constraint, end) == {end}
    assert constraint.error is None


def test_a_row_that_leaves_its_grammar_fails_alone(speaker: Speaker) -> None:
    failing, other = speaker.constraint(generate("a+")), speaker.constraint(generate("b+"))
    batch = TokenMasks([failing, None, other])
    a, b = tokens(speaker, "a") + tokens(speaker, "b")
    allowed_tokens(batch, [0, 0, 0], speaker.size)
    after = allowed_tokens(batch, [b, 0, b], speaker.size)
    assert failing.error is not None
    assert "grammar" in failing.error
    assert after[0].all() and after[1].all()
    assert np.flatnonzero(after[2]).tolist() == sorted({b, *speaker.ends})
    assert other.error is None
    assert allowed_tokens(batch, [a, 0, b], speaker.size)[0].all()


def test_a_gpu_unpacks_the_same_masks(speaker: Speaker, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = speaker.constraint(generate("[a-z ]+"))
    rows = token_masks.MIN_THREADED_ROWS  # another thread fills them, on a GPU
    on_cpu = allowed_tokens(TokenMasks([constraint.fork() for _ in range(rows)]), [0] * rows, speaker.size)
    monkeypatch.setattr(token_masks.mx, "default_device", lambda: mx.gpu)
    on_gpu = allowed_tokens(TokenMasks([constraint.fork() for _ in range(rows)]), [0] * rows, speaker.size)
    assert (on_cpu == on_gpu).all()
    assert on_cpu.any() and not on_cpu.all()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("width", [-3, 40])
def test_logits_may_be_wider_or_narrower_than_the_vocabulary(
    speaker: Speaker, device: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_masks.mx, "default_device", lambda: mx.cpu if device == "cpu" else mx.gpu)
    size = speaker.size + width
    after = allowed_tokens(TokenMasks([speaker.constraint(generate("a"))]), [0], size)
    assert np.flatnonzero(after[0]).tolist() == tokens(speaker, "a")


@pytest.mark.parametrize("thinking", [True, False])
def test_a_spent_budget_closes_the_reasoning(speaker: Speaker, thinking: bool) -> None:
    request = chat(reasoning_budget=5, format=RegexFormat("[a-z]{3}"))
    lengths = set()
    for seed in range(12):
        answer = speaker.say(request, seed, thinking=thinking)
        reasoning, closed, content = answer.rpartition("</think>")
        assert re.fullmatch(r"[ \n]{0,4}[a-z]{3}", content)
        assert closed or not thinking
        lengths.add(len(tokens(speaker, reasoning.removeprefix("<think>"))))
    assert max(lengths) <= 5 + 3  # a character is not cut, and random tokens are not how text is encoded


def test_a_budget_of_zero_closes_the_reasoning_at_once(speaker: Speaker) -> None:
    answer = speaker.say(chat(reasoning_budget=0, format=RegexFormat("a")), thinking=True)
    assert re.fullmatch(r"</think>[ \n]{0,4}a", answer)


def test_a_budget_alone_forbids_only_longer_reasoning(speaker: Speaker) -> None:
    constraint = speaker.constraint(chat(reasoning_budget=2), thinking=True)
    (word,), (close,) = tokens(speaker, "ka"), tokens(speaker, "</think>")
    assert [len(allowed(speaker, constraint, newest)) for newest in (0, word)] == [speaker.size] * 2
    assert allowed(speaker, constraint, word) == {close}
    assert len(allowed(speaker, constraint, close)) == speaker.size


def test_a_character_is_finished_before_the_reasoning_is_closed(speaker: Speaker) -> None:
    constraint = speaker.constraint(chat(reasoning_budget=1), thinking=True)
    *parts, last = tokens(speaker, "é")
    assert parts
    for newest in (0, *parts):
        assert len(allowed(speaker, constraint, newest)) == speaker.size
    assert allowed(speaker, constraint, last) == set(tokens(speaker, "</think>"))


def test_the_budget_covers_all_reasoning_together(speaker: Speaker) -> None:
    constraint = speaker.constraint(chat(reasoning_budget=2))
    (word,), (open,), (close,) = (tokens(speaker, text) for text in ("ka", "<think>", "</think>"))
    for newest in (0, open, word, close, word, word, open):
        assert len(allowed(speaker, constraint, newest)) == speaker.size
    assert allowed(speaker, constraint, word) == {close}


def test_a_call_that_ends_reasoning_ends_what_the_budget_counts(speaker: Speaker) -> None:
    syntax = replace(speaker.syntax, tools=FORMATS["qwen3_coder"])
    (word,), start = tokens(speaker, "ka"), tokens(speaker, "<tool_call>")
    request = chat(reasoning_budget=len(start) + 1, tools=[tool("look")])
    constraint = speaker.grammars.make_constraint(request, syntax, True)
    assert constraint is not None
    for newest in (0, *start, word, word, word):
        assert len(allowed(speaker, constraint, newest)) == speaker.size


def test_a_marker_of_several_tokens_is_forced_token_by_token(speaker: Speaker) -> None:
    syntax = replace(speaker.syntax, think_start="{", think_end="(end)\n")
    request = chat(reasoning_budget=1, format=RegexFormat("[a-z]{3}"))
    constraint = speaker.grammars.make_constraint(request, syntax, True)
    assert constraint is not None
    (answer,) = speaker.follow([constraint], [3])
    assert re.fullmatch(r"[^(]+\(end\)\n[ \n]{0,4}[a-z]{3}", answer)


def test_a_started_marker_is_completed_when_the_budget_is_spent(speaker: Speaker) -> None:
    syntax = replace(speaker.syntax, think_end="(end)")
    constraint = speaker.grammars.make_constraint(chat(reasoning_budget=1), syntax, True)
    assert constraint is not None
    bracket, following, *_ = tokens(speaker, "(end)")
    allowed(speaker, constraint)
    assert allowed(speaker, constraint, bracket) == {following}


def test_a_reasoning_budget_is_ignored_for_a_model_without_reasoning(speaker: Speaker) -> None:
    syntax = replace(speaker.syntax, think_start=None, think_end=None)
    assert speaker.grammars.make_constraint(chat(reasoning_budget=1), syntax, False) is None


LOOK = tool("look", deep={"type": "boolean"})
FORCED = {"format": {"format": RegexFormat("[a-z]{3}")}, "call": {"tools": [LOOK], "tool_choice": "required"}}
MARKERS = [("<think>", "</think>"), ("<thought>", "</thought>"), ("Here I think:", "Here I answer:")]
"""Markers around reasoning: a token, text that begins as a call does, and a sentence."""


def written(speaker: Speaker, request: Chat, markers: tuple[str, str], preferred: str) -> str:
    """Return what a model writes that prefers this text to all others, and writes anything allowed after it."""
    syntax = replace(speaker.syntax, think_start=markers[0], think_end=markers[1], tools=FORMATS["json_tools"])
    masks = TokenMasks([speaker.grammars.make_constraint(request, syntax, False, opening="<assistant>")])
    answer, newest = "", 0
    for token in tokens(speaker, preferred):
        logits = mx.zeros((1, speaker.size))
        logits[0, token] = 1.0
        newest = int(np.asarray(masks(logits, mx.array([newest]))[0]).argmax())
        answer += speaker.tokenizer.decode([newest])
    return answer


@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize("space", ["", "\n", "\n\n"])
@pytest.mark.parametrize("forced", FORCED)
def test_reasoning_that_nobody_asked_for_opens_a_forced_answer_if_the_model_prefers_it(
    speaker: Speaker, markers: tuple[str, str], space: str, forced: str
) -> None:
    thought = f"{space}{markers[0]}So"
    assert written(speaker, chat(**FORCED[forced]), markers, thought) == thought


@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize(
    ("forced", "preferred"),
    [
        ("format", "Sure, here it is"),
        ("format", "\n\nSure, here"),
        ("call", "Sure, here it is"),
        ("call", "\n\nSure, here"),
        ("call", "<so I look"),  # its first letter is that of the call, too
    ],
)
def test_a_mask_leads_no_forced_answer_into_reasoning_that_nobody_asked_for(
    speaker: Speaker, markers: tuple[str, str], forced: str, preferred: str
) -> None:
    answer = written(speaker, chat(**FORCED[forced]), markers, preferred).strip()
    assert "<tool_call>".startswith(answer[:11]) if forced == "call" else re.match("[a-z]", answer)


@pytest.mark.parametrize("markers", MARKERS)
def test_reasoning_that_was_asked_for_needs_no_preference(speaker: Speaker, markers: tuple[str, str]) -> None:
    request = chat(format=RegexFormat("[a-z]{3}"), reasoning="on")
    syntax = replace(speaker.syntax, think_start=markers[0], think_end=markers[1])
    constraint = speaker.grammars.make_constraint(request, syntax, False)
    assert constraint is not None
    assert tokens(speaker, markers[0])[0] in allowed(speaker, constraint)


@pytest.mark.parametrize(("most", "room"), [(8, 9), (None, 8)])
def test_the_reasoning_of_a_forced_answer_leaves_room_for_the_answer(
    speaker: Speaker, most: int | None, room: int
) -> None:
    request = chat(format=RegexFormat("[a-z]{3}"), max_tokens=most)
    masks = TokenMasks([speaker.grammars.make_constraint(request, speaker.syntax, True, room=room)])
    (word,), closing = tokens(speaker, "ka"), tokens(speaker, "</think>")
    allowed = allowed_tokens(masks, [0], speaker.size)
    for _ in range(4):
        assert allowed[0].sum() > 1
        allowed = allowed_tokens(masks, [word], speaker.size)
    assert np.flatnonzero(allowed[0]).tolist() == closing
