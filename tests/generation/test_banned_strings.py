"""Banned strings: the answer is the one that a plain search with a way back finds, and what it lost is never shown."""

import random
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Generate, RegexFormat
from lmwire_worker.engine.interface import Failed, RunnerEvent, TokenDelta
from lmwire_worker.generation.banned_strings import MAX_ATTEMPTS, BannedStrings, GeneratedToken
from lmwire_worker.generation.output_processor import OutputProcessor
from lmwire_worker.generation.request_table import Sequence
from lmwire_worker.text_stream.string_matcher import StringAutomaton
from support.many_cases import for_each
from support.runners.generation_runners import FolderOf, RunnerOf, ask, choices, stock

PIECES = [
    b"",
    *(text.encode() for text in ["a", "b", "c", "ab", "bc", "B", "é", "İ", "Δx"]),
    b"\xc3",
    b"\xa9",
    b"\xe2\x82",
    b"\xac",
    b"\xff",
]
"""The bytes of each token but the last; some are parts of characters, or none."""
END = len(PIECES)
STRINGS = ["abc", "bb", "\u00e9a", "\u20acb", "cab", "\u0130", "\u03b4X", "aaaa", "\u00e9\u00e9"]

Preference = Callable[[tuple[int, ...]], list[int]]
"""Returns all tokens after some tokens of an answer, the best one first."""


def token_bytes(token: int) -> bytes:
    return PIECES[token] if token < END else b""


def preference(seed: int) -> Preference:
    def ranked(tokens: tuple[int, ...]) -> list[int]:
        order = [*range(END + 1)]
        random.Random(hash((seed, tokens))).shuffle(order)
        return order

    return ranked


def lower(text: str) -> str:
    return "".join(character.lower() if len(character.lower()) == 1 else character for character in text)


def unfinished(data: bytes) -> int:
    """Return the number of bytes at the end of a text that further bytes may make a character."""
    for count in (3, 2, 1):
        for more in (b"\xa9", b"\xac\xac", b"\xac\xac\xac"):
            try:
                if len(data) >= count and len((data[-count:] + more).decode()) == 1:
                    return count
            except UnicodeDecodeError:
                pass
    return 0


def searched(
    best: Preference, banned: list[str], limit: int, ends: set[int], pieces: Callable[[int], bytes]
) -> list[int]:
    """The answer: the best token each time, and back to the token that began a banned string, unless it is released."""
    strings = [lower(string) for string in banned]
    tokens: list[int] = []
    released = 0
    avoided: dict[tuple[int, ...], set[int]] = {}
    while len(tokens) < limit:
        before = tuple(tokens)
        token = next(token for token in best(before) if token not in avoided.get(before, ()))
        tokens.append(token)
        if token in ends:
            return tokens
        data = b"".join(map(pieces, tokens))
        text = data.decode(errors="surrogateescape")
        sizes = [len(b"".join(map(pieces, tokens[:count]))) for count in range(len(tokens) + 1)]

        def holder(character: int, text: str = text, sizes: list[int] = sizes) -> int:
            """Return the index of the token in which a character starts."""
            byte = len(text[:character].encode(errors="surrogateescape"))
            return next(index for index in range(len(tokens)) if sizes[index + 1] > byte)

        found = [lower(text).find(string) for string in strings if string in lower(text)]
        if found:
            index = max(released, holder(min(found)))
            avoided.setdefault(tuple(tokens[:index]), set()).add(tokens[index])
            del tokens[index:]
            continue
        whole = data[: len(data) - unfinished(data)].decode(errors="surrogateescape")
        risky = [at for at in range(len(whole)) if any(string.startswith(lower(whole)[at:]) for string in strings)]
        if len(whole) < len(text):
            risky.append(len(whole))
        released = max(released, holder(risky[0])) if risky else len(tokens)
    return tokens


def filtered(best: Preference, bans: BannedStrings, limit: int) -> tuple[list[int], int]:
    """The answer of a model whose tokens pass through the banned strings, and the most tokens held back at once."""
    tokens: list[int] = []
    most = 0
    while len(tokens) < limit and END not in tokens:
        before = tuple(tokens + bans.held_tokens)
        token = next(token for token in best(before) if token not in bans.banned_at(len(before)))
        if bans.add(GeneratedToken(token, None, drafted=False)):
            tokens += [released.token for released in bans.release(limit - len(tokens))]
        most = max(most, len(bans.held_tokens))
    return tokens, most


@for_each(range(150))
def test_an_answer_is_the_one_that_a_plain_search_finds(seed: int) -> None:
    chance = random.Random(seed)
    banned = chance.sample(STRINGS, chance.randint(1, 5))
    best = preference(seed)
    expected = searched(best, banned, 60, {END}, token_bytes)
    tokens, most = filtered(best, BannedStrings(banned, token_bytes, {END}), 60)
    assert tokens == expected
    text = lower(b"".join(map(token_bytes, tokens)).decode(errors="surrogateescape"))
    assert [string for string in banned if lower(string) in text] == []
    assert most < 12, "of the longest string, and of empty tokens among its characters"


# A choice, with its events. A token is a letter.


class Letters:
    def add(self, token: int) -> str:
        return chr(token)

    def flush(self, *, is_cut: bool = False) -> str:
        return ""


def choice(*banned: str, max_tokens: int = 100, **fields: Any) -> Sequence:
    request = Generate(prompt="x", banned_strings=list(banned), **fields)
    output = OutputProcessor(
        1,
        0,
        request,
        max_tokens=max_tokens,
        eos_token_ids={0},
        detokenizer=Letters(),
        answer=None,
        stops=StringAutomaton(request.stop) if request.stop else None,
        format_logprob=lambda handle: pytest.fail("no log-probabilities were asked for"),
    )
    bans = BannedStrings(request.banned_strings, lambda token: chr(token).encode(), {0})
    return Sequence(1, request, 0, [1], output, bans=bans)


def give(row: Sequence, text: str) -> tuple[str, list[RunnerEvent]]:
    """Give the letters of a text to a choice; return what it shows of them, and the events."""
    for letter in text:
        if not row.append_token(ord(letter), None):
            break
    events = row.take_events()
    return "".join(event.text for event in events if isinstance(event, TokenDelta)), events


def test_text_is_held_back_while_it_may_become_a_banned_string() -> None:
    row = choice("secret")
    assert give(row, "a se")[0] == "a "
    assert row.remaining_tokens == 96
    assert give(row, "t ")[0] == "set "
    assert row.tokens == [1, *map(ord, "a set ")]


def test_what_is_taken_back_is_neither_shown_nor_counted() -> None:
    row = choice("secret")
    shown, events = give(row, "my SeCret")
    assert (shown, row.is_taken_back) == ("my ", True)
    assert row.tokens == [1, *map(ord, "my ")]
    assert row.bans is not None
    assert list(row.bans.banned_at(3)) == [ord("S")]
    row.restart()
    more, later = give(row, "dog\0")
    assert more == "dog"
    deltas = [event for event in events + later if isinstance(event, TokenDelta)]
    assert sum(delta.generated for delta in deltas) == len("my dog") + 1
    assert deltas[-1].finish_reason == "stop"


@pytest.mark.parametrize(
    ("end", "reason"), [(lambda row: give(row, "\0")[1], "stop"), (lambda row: row.finish("timeout"), "timeout")]
)
def test_what_was_held_back_is_shown_at_the_end(end: Callable[[Sequence], list[RunnerEvent]], reason: str) -> None:
    row = choice("secret")
    assert give(row, "my secr")[0] == "my "
    events = end(row)
    deltas = [event for event in events if isinstance(event, TokenDelta)]
    assert ("".join(delta.text for delta in deltas), deltas[-1].finish_reason) == ("secr", reason)


def test_the_last_token_of_an_answer_is_not_held_back() -> None:
    row = choice("secret", max_tokens=4)
    shown, events = give(row, "sec")
    assert (shown, row.remaining_tokens) == ("", 1)
    shown, events = give(row, "r")
    assert shown == "secr"
    assert isinstance(events[-1], TokenDelta)
    assert events[-1].finish_reason == "length"


def test_a_stop_string_ends_the_answer_before_what_is_held_back_after_it() -> None:
    row = choice("stop it", stop=["stop"])
    assert give(row, "do stop a")[0] == "do "
    assert row.status.value == "ended"
    assert row.finish("timeout") == []


def test_an_answer_that_can_go_on_with_nothing_else_fails_and_names_the_field() -> None:
    row = choice("a")
    for token in (ord("a"), ord("a")):
        row.append_token(token, None)
    (failed,) = row.take_events()
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.error.field) == ("invalid_request", "banned_strings")
    bans = BannedStrings(["a"], lambda token: b"a", set())
    for token in range(MAX_ATTEMPTS):
        assert not bans.add(GeneratedToken(token, None, drafted=False))
        assert not bans.has_failed
    bans.add(GeneratedToken(MAX_ATTEMPTS, None, drafted=False))
    assert bans.has_failed


# A model.


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen3", "qwen3_next"])
@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_model_goes_on_with_its_next_best_token(
    family: str, cache: str, runner_of: RunnerOf, folder_of: FolderOf
) -> None:
    runner = runner_of(family)
    fields: dict[str, Any] = {"prompt": [5, 6, 7, 8], "max_tokens": 20, "ignore_eos": True, "cache": cache}
    (free,) = ask(runner, Generate(**fields))
    banned = [free.text[2:5], free.text[12:14]]
    model, tokenizer = stock(folder_of(family))
    ends = runner.preparer.eos_token_ids

    def best(tokens: tuple[int, ...]) -> list[int]:
        logits = np.array(model(mx.array([[*fields["prompt"], *tokens]]))[0, -1].astype(mx.float32))
        logits[list(ends)] = -np.inf
        return np.argsort(-logits, kind="stable").tolist()

    expected = searched(best, banned, 20, ends, lambda token: tokenizer.decode([token]).encode())
    answers = ask(
        runner,
        Generate(**fields, banned_strings=banned),
        Generate(**fields),
        Generate(prompt="a b c" * 9, max_tokens=20),
    )
    assert answers[0].token_ids == expected
    assert answers[1] == free
    assert (answers[0].generated, answers[0].finish_reason) == (20, "length")
    assert [string for string in banned if string.lower() in answers[0].text.lower()] == []


@pytest.mark.slow
def test_choices_a_format_and_dry_go_back_as_well(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    pattern = RegexFormat(pattern="([a-h]{4}-){6}")
    for multiplier in (0, 3):
        request = Generate(
            prompt="x",
            max_tokens=60,
            n=4,
            temperature=1.5,
            banned_strings=["a", "bc", "d-e"],
            format=pattern,
            dry_multiplier=multiplier,
            dry_allowed_length=1,
        )
        for answer in choices(runner, request):
            assert answer.error is None
            assert len(answer.text) == 30
            assert [string for string in request.banned_strings if string in answer.text] == []


@pytest.mark.slow
def test_a_format_that_needs_a_banned_string_ends_its_own_request(runner_of: RunnerOf) -> None:
    forced = Generate(prompt="x", max_tokens=60, format=RegexFormat(pattern="the only text"), banned_strings=["only"])
    failed, other = ask(runner_of("qwen3"), forced, Generate(prompt="y", max_tokens=9, ignore_eos=True))
    assert failed.error is not None
    assert (failed.error.code, failed.error.field) == ("invalid_request", "banned_strings")
    assert other.error is None
