"""The mock's prefix cache, its context length, and the settings of a load."""

from typing import Any

import pytest

from lmwire_protocol import Chat, Generate, Load, RequestError
from lmwire_worker.engine.interface import PrefillProgress, TokenDelta
from lmwire_worker.mock import MockModelLoader, MockRunner
from lmwire_worker.mock.replies import Reply
from lmwire_worker.mock.scenario import Match, Rule, Script
from support.process.mock_host import LOAD, hear, mock


def opened(*rules: Rule, path: str = "mock", **fields: Any) -> MockRunner:
    return MockModelLoader(Script(rules)).open(Load(path=path, **fields), lambda *progress: None, lambda: None)


def cached(lane: MockRunner, prompt: str, **fields: Any) -> int:
    """Return the cached tokens of a prompt, and drop the request at once."""
    admitted = lane.add(1, Generate(prompt=prompt, **fields), 0)
    lane.remove(1)
    return admitted.cached_tokens


def answer(lane: MockRunner, request: Generate | Chat) -> str:
    lane.add(1, request, 0)
    text = ""
    for _ in range(100):
        for piece in lane.step():
            if isinstance(piece, TokenDelta):
                text += piece.text
                if piece.finish_reason:
                    return text
    raise AssertionError("no end")


def test_a_prompt_begins_with_what_was_heard_before() -> None:
    lane = opened()
    assert [cached(lane, prompt) for prompt in ("a b c", "a b d", "a b d e", "x")] == [0, 2, 2, 0]


def test_the_last_word_is_worked_out_anew() -> None:
    lane = opened()
    assert [cached(lane, "a b c"), cached(lane, "a b c")] == [0, 2]


def test_with_cache_off_nothing_is_remembered_and_nothing_is_known() -> None:
    lane = opened()
    assert cached(lane, "a b c", cache="off") == cached(lane, "a b c") == cached(lane, "a b c", cache="off") == 0


def test_what_was_used_least_recently_is_forgotten_first_and_what_is_pinned_never() -> None:
    lane = opened()
    half = "x" * (1 << 19)
    cached(lane, "pinned a b", cache="pin")
    cached(lane, "loose a b")
    cached(lane, f"first {half}")
    cached(lane, "loose a c")
    cached(lane, f"second {half}")
    assert [cached(lane, f"{first} a z") for first in ("pinned", "loose", "first")] == [2, 2, 0]
    assert lane.cache_stats().evictions == 1


def test_what_does_not_fit_beside_what_is_pinned_is_not_remembered() -> None:
    lane = opened()
    for place in range(300):
        cached(lane, f"{place} a b", cache="pin")
    assert lane.cache_stats().entries == 256
    assert [cached(lane, f"{place} a b c") for place in (0, 255, 256)] == [2, 2, 0]


def test_clearing_forgets_the_pinned_too_and_reports_the_bytes() -> None:
    lane = opened()
    cached(lane, "a b", cache="pin")
    assert (lane.clear_cache(), lane.clear_cache(), cached(lane, "a b")) == (3, 0, 0)


def test_the_figures_add_up() -> None:
    lane = opened()
    for prompt in ("a b c", "a b c", "a b d", "x"):
        cached(lane, prompt)
    stats = lane.cache_stats()
    assert (stats.hits, stats.misses, stats.saved_tokens, stats.entries, stats.bytes) == (2, 2, 4, 3, 11)


def test_progress_begins_with_what_is_known() -> None:
    lane = opened()
    prompt = "a " * 2000
    cached(lane, prompt)
    lane.add(1, Generate(prompt=prompt, max_tokens=1), 0)
    (outcome,) = lane.step()
    assert isinstance(outcome, PrefillProgress)
    assert (outcome.done, outcome.total) == (2000, 2000)


def test_a_context_holds_what_the_load_says() -> None:
    lane = opened(context_len=4)
    assert lane.model.context_len == 4
    assert answer(lane, Generate(prompt="a b c", max_tokens=9)) == "a "
    with pytest.raises(RequestError) as caught:
        lane.add(2, Generate(prompt="a b c d e"), 0)
    assert caught.value.code == "context_overflow"


@pytest.mark.parametrize(("truncate", "said"), [("left", "e f "), ("middle", "a f ")])
def test_a_prompt_is_cut_to_the_context(truncate: Any, said: str) -> None:
    request = Generate(prompt="a b c d e f ", truncate=truncate, max_tokens=2)
    assert answer(opened(context_len=4), request) == said


def test_a_longer_context_than_the_models_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        opened(context_len=(1 << 20) + 1)
    assert (caught.value.code, caught.value.field) == ("invalid_request", "context_len")


@pytest.mark.parametrize(
    ("field", "value"),
    [("adapter_path", "/adapters/poet"), ("draft_path", "/m"), ("kv_bits", 8), ("chat_template_name", "chatml")],
)
def test_what_there_are_no_weights_for_is_refused_unless_a_rule_looks_at_it(field: str, value: Any) -> None:
    with pytest.raises(RequestError) as caught:
        opened(**{field: value})
    assert (caught.value.code, caught.value.field) == ("unsupported", field)
    lane = opened(Rule(Reply(), Match(cmd="load", has=[field])), path="m", **{field: value})
    for reported in ("adapter_path", "chat_template_name"):
        assert getattr(lane.model, reported) == (value if field == reported else None)


def test_a_process_reports_its_cache() -> None:
    asked = [{"id": id, "cmd": "generate", "prompt": "a b c"} for id in "123"]
    heard = hear(mock(), LOAD, *asked[:2], {"id": "c", "cmd": "cache", "action": "clear"}, asked[2])
    assert [heard.terminals(id)[0]["usage"]["cached_tokens"] for id in "123"] == [0, 2, 0]
    assert heard.terminals("c")[0]["freed_bytes"] == len("a b c")
