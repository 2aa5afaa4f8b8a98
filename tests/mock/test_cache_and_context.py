"""The mock's prefix cache, its context length, and the settings of a load."""

from typing import Any

import pytest

from lmwire_protocol import Chat, Generate, Load, RequestError
from lmwire_protocol.events import CacheMiss
from lmwire_worker.engine.interface import PrefillProgress, TokenDelta
from lmwire_worker.mock import MockModelLoader, MockRunner
from lmwire_worker.mock.replies import Reply
from lmwire_worker.mock.scenario import Match, Rule, Script
from support.process.mock_host import LOAD, mock
from support.process.worker_thread import run_on_thread


def opened(*rules: Rule, path: str = "mock", **fields: Any) -> MockRunner:
    return MockModelLoader(Script(rules)).open(Load(path=path, **fields), lambda *progress: None, lambda: None)


def cached(runner: MockRunner, prompt: str, **fields: Any) -> int:
    """Return the cached tokens of a prompt, and drop the request at once."""
    admitted = runner.add(1, Generate(prompt=prompt, **fields), 0)
    runner.remove(1)
    return admitted.cached_tokens


def miss(runner: MockRunner, prompt: str, **fields: Any) -> CacheMiss | None:
    """Return where a prompt ceases to be cached, and drop the request at once."""
    admitted = runner.add(1, Generate(prompt=prompt, cache_report=True, **fields), 0)
    runner.remove(1)
    return admitted.cache_miss


def test_a_report_names_the_first_word_that_differs_from_what_is_cached() -> None:
    runner = opened()
    assert miss(runner, "a b c ") == CacheMiss(0)
    assert miss(runner, "a x c ") == CacheMiss(1, "x ")
    assert miss(runner, "a b c d e ") == CacheMiss(3), "what is cached ends there"
    assert miss(runner, "a b c d e ") is None
    assert miss(runner, "z y", cache="off") is None
    assert runner.add(1, Generate(prompt="z y"), 0).cache_miss is None, "nobody asked"


def answer(runner: MockRunner, request: Generate | Chat) -> str:
    runner.add(1, request, 0)
    text = ""
    for _ in range(100):
        for delta in runner.step():
            if isinstance(delta, TokenDelta):
                text += delta.text
                if delta.finish_reason:
                    return text
    raise AssertionError("no end")


def test_a_prompt_reuses_the_cached_beginning_of_an_earlier_one() -> None:
    runner = opened()
    assert [cached(runner, prompt) for prompt in ("a b c", "a b d", "a b d e", "x")] == [0, 2, 2, 0]


def test_the_last_word_of_a_prompt_is_always_computed() -> None:
    runner = opened()
    assert [cached(runner, "a b c"), cached(runner, "a b c")] == [0, 2]


def test_with_cache_off_nothing_is_cached_or_reused() -> None:
    runner = opened()
    assert cached(runner, "a b c", cache="off") == cached(runner, "a b c") == cached(runner, "a b c", cache="off") == 0


def test_the_least_recently_used_prompt_is_evicted_first_and_a_pinned_one_never() -> None:
    runner = opened()
    half = "x" * (1 << 19)
    cached(runner, "pinned a b", cache="pin")
    cached(runner, "loose a b")
    cached(runner, f"first {half}")
    cached(runner, "loose a c")
    cached(runner, f"second {half}")
    assert [cached(runner, f"{first} a z") for first in ("pinned", "loose", "first")] == [2, 2, 0]
    assert runner.cache_stats().evictions == 1


def test_a_prompt_that_does_not_fit_beside_pinned_ones_is_not_cached() -> None:
    runner = opened()
    for place in range(300):
        cached(runner, f"{place} a b", cache="pin")
    assert runner.cache_stats().entries == 256
    assert [cached(runner, f"{place} a b c") for place in (0, 255, 256)] == [2, 2, 0]


def test_clearing_forgets_the_pinned_too_and_reports_the_bytes() -> None:
    runner = opened()
    cached(runner, "a b", cache="pin")
    assert (runner.clear_cache(), runner.clear_cache(), cached(runner, "a b")) == (3, 0, 0)


def test_the_cache_statistics_add_up() -> None:
    runner = opened()
    for prompt in ("a b c", "a b c", "a b d", "x"):
        cached(runner, prompt)
    stats = runner.cache_stats()
    assert (stats.hits, stats.misses, stats.saved_tokens, stats.entries, stats.bytes) == (2, 2, 4, 3, 11)


def test_prefill_progress_starts_at_the_cached_tokens() -> None:
    runner = opened()
    prompt = "a " * 2000
    cached(runner, prompt)
    runner.add(1, Generate(prompt=prompt, max_tokens=1), 0)
    (outcome,) = runner.step()
    assert isinstance(outcome, PrefillProgress)
    assert (outcome.done, outcome.total) == (1999, 2000)


def test_a_context_holds_what_the_load_says() -> None:
    runner = opened(context_len=4)
    assert runner.model.context_len == 4
    assert answer(runner, Generate(prompt="a b c", max_tokens=9)) == "a "
    with pytest.raises(RequestError) as caught:
        runner.add(2, Generate(prompt="a b c d e"), 0)
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
def test_a_load_option_that_needs_weights_is_refused_unless_a_rule_matches_it(field: str, value: Any) -> None:
    with pytest.raises(RequestError) as caught:
        opened(**{field: value})
    assert (caught.value.code, caught.value.field) == ("unsupported", field)
    runner = opened(Rule(Reply(), Match(cmd="load", has=[field])), path="m", **{field: value})
    for reported in ("adapter_path", "chat_template_name"):
        assert getattr(runner.model, reported) == (value if field == reported else None)


def test_a_process_reports_its_cache() -> None:
    asked = [{"id": id, "cmd": "generate", "prompt": "a b c"} for id in "123"]
    output = run_on_thread(mock(), LOAD, *asked[:2], {"id": "c", "cmd": "cache", "action": "clear"}, asked[2])
    assert [output.terminals(id)[0]["usage"]["cached_tokens"] for id in "123"] == [0, 2, 0]
    assert output.terminals("c")[0]["freed_bytes"] == len("a b c")
