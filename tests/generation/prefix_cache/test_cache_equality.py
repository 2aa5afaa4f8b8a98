"""An answer that begins with what is cached is the answer that is computed from nothing, token for token."""

import random
from bisect import bisect
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from msgspec.structs import replace

from lmwire_protocol import Chat, Generate, Message, RegexFormat, RequestError
from lmwire_worker.generation.request_table import Sequence
from lmwire_worker.generation.runner import GenerationRunner
from random_model import write_model
from support.models.misbehaving_models import MARK, RAISES, write_misbehaving_model
from support.nightly import nightly_but
from support.runners.generation_runners import Answer, Driver, RunnerOf, ask, chat, choices, open_runner

pytestmark = pytest.mark.slow

END = 511
"""The families' end-of-turn token."""


def tokens(count: int, seed: int = 0) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(5, 250) for _ in range(count)]


def cached(runner: GenerationRunner) -> int:
    stats = runner.cache_stats()
    assert stats is not None
    return stats.saved_tokens


def same(one: Answer, other: Answer) -> None:
    assert (one.error, other.error) == (None, None)
    assert one.token_ids == other.token_ids
    assert (one.text, one.reasoning, one.finish_reason, one.stop) == (
        other.text,
        other.reasoning,
        other.finish_reason,
        other.stop,
    )
    assert [entry.logprob for entry in one.logprobs] == pytest.approx([e.logprob for e in other.logprobs], abs=1e-3)


def warm(runner: GenerationRunner, request: Generate | Chat, seed: int = 0) -> int:
    """Return the cached tokens of a request, and compare its answer with that of an empty cache."""
    before = cached(runner)
    answer = ask(runner, request, seeds=[seed])[0]
    hit = cached(runner) - before
    same(answer, ask(runner, replace(request, cache="off"), seeds=[seed])[0])
    return hit


KINDS = ("qwen3", "gemma3_text", "mamba", "qwen3_next")
"""A family of each kind of cache: keys and values, a window of them, states, and both."""
whatever_the_cache = pytest.mark.parametrize("runner", ["qwen3"], indirect=True)
"""For what is decided before any cache is looked at."""
with_or_without_states = pytest.mark.parametrize("runner", ["qwen3", "mamba"], indirect=True)


@pytest.fixture(params=nightly_but({"gemma3_text", "qwen3_next"}, KINDS))
def runner(request: pytest.FixtureRequest, runner_of: RunnerOf) -> GenerationRunner:
    """With nothing cached, and no check due within a test."""
    runner = runner_of(request.param)
    runner.clear_cache()
    runner.cache.prefix_cache.verify_interval = 1 << 30
    return runner


def test_a_repeated_prompt_is_cached_except_for_its_last_token(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(80), max_tokens=12)
    assert warm(runner, request) == 0
    assert warm(runner, request) == 79


def test_a_conversation_goes_on_from_the_end_of_each_answer(runner: GenerationRunner) -> None:
    history: list[int] = []
    known = 0
    for turn in range(4):
        history += tokens(30, seed=turn)
        request = Generate(prompt=[*history], max_tokens=10)
        assert warm(runner, request) == known
        (answer,) = ask(runner, request)
        history += [*answer.token_ids, *[END][: answer.finish_reason == "stop"]]
        known = len(history) - (answer.finish_reason == "length")  # to process the very last token, nobody waits


def test_concurrent_conversations_share_a_cached_system_prompt(runner: GenerationRunner) -> None:
    system = tokens(60)
    talks = [[*system, END, *tokens(10, seed=n)] for n in range(4)]
    for turn in range(3):
        requests = [Generate(prompt=talk, max_tokens=8, temperature=1.0) for talk in talks]
        answers = ask(runner, *requests, seeds=range(4))
        for talk, request, answer in zip(talks, requests, answers, strict=True):
            seed = talks.index(talk)
            same(answer, ask(runner, replace(request, cache="off"), seeds=[seed])[0])
            talk += [*answer.token_ids, END, *tokens(5, seed=10 * turn + seed)]
    assert cached(runner) >= 4 * 2 * len(system)


def test_a_chat_goes_on_at_the_end_of_a_message(runner: GenerationRunner) -> None:
    first = chat("How do I do it?", max_tokens=12)
    (answer,) = ask(runner, first)
    said = [*first.messages, Message(role="assistant", content=answer.text), Message(role="user", content="And then?")]
    assert warm(runner, Chat(messages=said, max_tokens=12)) > 10
    other = [*said[:2], Message(role="user", content="Never mind.")]
    assert warm(runner, Chat(messages=other, max_tokens=12)) > 10, "branched back"


def test_a_prompt_that_branches_off_continues_from_the_end_of_a_message(runner: GenerationRunner) -> None:
    shared = [*tokens(40), END, *tokens(20, seed=1), END]
    warm(runner, Generate(prompt=[*shared, *tokens(30, seed=2)], max_tokens=5))
    assert warm(runner, Generate(prompt=[*shared, *tokens(30, seed=3)], max_tokens=5)) >= len(shared)


@pytest.mark.parametrize("steps", [1, 6])
def test_answers_are_equal_after_a_cancel_at_any_point(steps: int, runner: GenerationRunner) -> None:
    driver = Driver(runner)
    prompt = tokens(200)
    request = Generate(prompt=prompt, max_tokens=30, ignore_eos=True)
    driver.add(0, request)
    driver.add(1, Generate(prompt=tokens(40, seed=1), max_tokens=20, ignore_eos=True))
    driver.steps(steps)
    gone = driver.remove(0)
    driver.finish()
    warm(runner, Generate(prompt=[*prompt, *gone.token_ids, *tokens(9, seed=3)], max_tokens=10))
    warm(runner, request)


@with_or_without_states
def test_answers_are_equal_after_a_stop_string(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(50), max_tokens=60, stop=["a"], ignore_eos=True, temperature=1.0)
    (answer,) = ask(runner, request)
    assert answer.finish_reason == "stop"
    assert warm(runner, Generate(prompt=[*tokens(50), *answer.token_ids, 9, 9], max_tokens=10)) >= 50


def test_answers_are_equal_after_evictions_in_any_order(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = runner.cache.prefix_cache
    chance = random.Random(1)
    bases = [[*tokens(60, seed=n), END] for n in range(3)]
    warm(runner, Generate(prompt=[*bases[0], *tokens(20)], max_tokens=4))
    budget = 3 * cache.bytes
    monkeypatch.setattr(cache, "budget", budget)
    before = cache.stats()
    for _ in range(8):
        prompt = [*chance.choice(bases), *tokens(20, seed=chance.randrange(3)), *chance.sample([7, 8, 9], 3)]
        warm(runner, Generate(prompt=prompt, max_tokens=4))
        assert cache.bytes <= budget
    assert cache.stats().hits > before.hits
    assert cache.stats().evictions > before.evictions


def test_every_choice_of_a_cached_prompt_is_equal(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(70), max_tokens=10, temperature=1.0, n=4)
    for _ in range(2):
        together = choices(runner, request, seed=3)
        alone = choices(runner, replace(request, cache="off"), seed=3)
        for one, other in zip(together, alone, strict=True):
            same(one, other)
    longer = replace(request, prompt=[*tokens(70), *tokens(9, seed=1)])
    for one, other in zip(choices(runner, longer, 3), choices(runner, replace(longer, cache="off"), 3), strict=True):
        same(one, other)


@with_or_without_states
@pytest.mark.parametrize(
    "fields",
    [
        {"format": RegexFormat(pattern="[a-f]{4,8}(-[0-9]{3}){2}")},
        {"logprobs": True, "top_logprobs": 5},
        {"repetition_penalty": 1.4, "penalty_window": 0, "frequency_penalty": 0.5},
        {"min_tokens": 8, "temperature": 1.0, "top_p": 0.8, "xtc_probability": 0.5},
    ],
)
def test_answers_are_equal_with_any_options(fields: dict[str, Any], runner: GenerationRunner) -> None:
    for prompt in (tokens(40), [*tokens(40), *tokens(3, seed=1)]):
        warm(runner, Generate(prompt=prompt, max_tokens=20, **fields), seed=7)


def test_a_pinned_prompt_survives_eviction(runner: GenerationRunner) -> None:
    warm(runner, Generate(prompt=tokens(90), max_tokens=0, cache="pin"))
    runner.cache.evict(1 << 40)
    assert warm(runner, Generate(prompt=[*tokens(90), 7, 8], max_tokens=8)) == 90


def test_the_same_prompt_twice_at_once_is_processed_once(runner: GenerationRunner) -> None:
    requests = [Generate(prompt=tokens(200), max_tokens=8, temperature=1.0, n=n) for n in (1, 2)]
    before, driver = cached(runner), Driver(runner)
    for key, request in enumerate(requests):
        driver.add(key, request, key)
    driver.finish()
    assert cached(runner) - before == 199
    for key, request in enumerate(requests):
        for one, other in zip(driver.choices[key], choices(runner, replace(request, cache="off"), key), strict=True):
            same(one, other)


@with_or_without_states
def test_a_prompt_that_waits_for_the_same_one_goes_on_without_it(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(200), max_tokens=8)
    driver = Driver(runner)
    driver.add(0, request)
    driver.add(1, request)
    driver.remove(0)
    same(driver.finish()[1], ask(runner, replace(request, cache="off"))[0])


@whatever_the_cache
def test_a_request_with_the_cache_off_waits_for_none(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(200), max_tokens=8)
    before, driver = cached(runner), Driver(runner)
    driver.add(0, request)
    driver.add(1, replace(request, cache="off"))
    same(*driver.finish().values())
    assert cached(runner) == before


def test_a_prompt_that_passes_the_check_for_pins_fits_the_budget(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pin evicts unpinned entries, and no pinned ones."""
    manager, chat = runner.cache, [*tokens(40), END, *tokens(60, seed=1)]
    pins = [chat, [*chat, END, *tokens(50, seed=2)], tokens(70, seed=3)]
    for prompt in pins:
        ask(runner, Generate(prompt=tokens(200, seed=4), max_tokens=0))
        request = Generate(prompt=prompt, max_tokens=4, cache="pin")
        (stream,) = runner.preparer.build_sequences(0, request, 0, runner.preparer.prepare(request), plain_text=False)

        def refused(budget: int, stream: Sequence = stream) -> bool:
            monkeypatch.setattr(manager.prefix_cache, "budget", budget)
            try:
                manager.check_pin(stream)
            except RequestError as error:
                assert (error.code, error.field) == ("out_of_memory", "cache")
                return True
            return False

        least = bisect(range(1 << 24), False, key=lambda budget: not refused(budget))
        assert not refused(least)
        ask(runner, request)
    manager.evict(1 << 40)
    for prompt in pins:
        assert warm(runner, Generate(prompt=prompt, max_tokens=4)) == len(prompt) - 1


@whatever_the_cache
def test_a_request_with_the_cache_off_leaves_no_trace(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(50), max_tokens=5, cache="off")
    ask(runner, request)
    assert warm(runner, replace(request, cache="on")) == 0


@with_or_without_states
def test_clearing_gives_the_bytes_back_and_forgets(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(50), max_tokens=5, cache="pin")
    warm(runner, request)
    stats = runner.cache_stats()
    assert stats is not None
    assert runner.clear_cache() == stats.bytes > 0
    assert warm(runner, request) == 0


def test_prompts_known_to_different_lengths_are_processed_together(runner: GenerationRunner) -> None:
    for length in (20, 50):
        ask(runner, Generate(prompt=tokens(length, seed=length), max_tokens=1))
    requests = [
        Generate(prompt=[*tokens(20, seed=20), *tokens(30, seed=1)], max_tokens=10),
        Generate(prompt=[*tokens(50, seed=50), *tokens(7, seed=2)], max_tokens=10),
        Generate(prompt=tokens(33, seed=3), max_tokens=10),
    ]
    for answer, request in zip(ask(runner, *requests), requests, strict=True):
        same(answer, ask(runner, replace(request, cache="off"))[0])


@whatever_the_cache
def test_progress_counts_what_was_cached(runner: GenerationRunner) -> None:
    ask(runner, Generate(prompt=tokens(64), max_tokens=1))
    (answer,) = ask(runner, Generate(prompt=[*tokens(64), *tokens(36, seed=1)], max_tokens=1))
    assert answer.cached == 64, "the first progress comes before a slice"
    assert answer.prefilled[0][0] > 64
    assert answer.prefilled[-1] == (100, 100)


def test_answers_are_equal_with_a_quantized_cache(tmp_path: Path) -> None:
    runner = open_runner(write_model(tmp_path, head_dim=32), kv_bits=8)
    request = Generate(prompt=tokens(80), max_tokens=12)
    assert warm(runner, request) == 0
    assert warm(runner, replace(request, prompt=[*tokens(50), *tokens(20, seed=1)])) == 50
    assert warm(runner, request) == 79


# Checks.


def test_verification_of_a_correct_entry_changes_nothing(runner: GenerationRunner) -> None:
    runner.cache.prefix_cache.verify_interval = 2
    request = Generate(prompt=tokens(40), max_tokens=6, n=2, temperature=1.0)
    for _ in range(5):
        for one, other in zip(choices(runner, request), choices(runner, replace(request, cache="off")), strict=True):
            same(one, other)
    stats = runner.cache_stats()
    assert stats is not None
    assert stats.mismatches == 0
    assert stats.bytes > 0


def test_verification_drops_a_wrong_entry(runner: GenerationRunner) -> None:
    request = Generate(prompt=tokens(40), max_tokens=6)
    ask(runner, request)
    cache = runner.cache.prefix_cache
    for node in cache.root.subtree():
        node.slices = [[array + mx.random.normal(array.shape) for array in arrays] for arrays in node.slices]
        for part in node.snapshot or ():
            arrays = getattr(part, "cache", None)
            if arrays is not None:
                part.cache = [array + mx.random.normal(array.shape) for array in arrays]
            else:
                part.values = part.values + mx.random.normal(part.values.shape)
    cache.verify_interval = 1
    (answer,) = ask(runner, request)
    cache.verify_interval = 1 << 30
    same(answer, ask(runner, replace(request, cache="off"))[0])
    stats = runner.cache_stats()
    assert stats is not None
    assert stats.mismatches == 1
    assert warm(runner, request) == 39, "what was computed anew is kept in its place"


# Trouble.


def test_nothing_of_a_failed_step_is_cached(tmp_path: Path) -> None:
    runner = open_runner(write_misbehaving_model(tmp_path / "custom", RAISES), trust_remote_code=True)
    well, ill = Generate(prompt=[65] * 30, max_tokens=6), Generate(prompt=[66] * 20 + [MARK, 66], max_tokens=6)
    fine, failed = ask(runner, well, ill)
    assert fine.error is None
    assert failed.error is not None
    assert warm(runner, Generate(prompt=[66] * 20 + [67], max_tokens=2)) in (0, 20)


def test_a_pin_is_refused_for_a_model_whose_caches_cannot_be_stored(tmp_path: Path) -> None:
    runner = open_runner(write_misbehaving_model(tmp_path / "custom", RAISES), trust_remote_code=True)
    runner.cache.schema.is_supported = False
    with pytest.raises(RequestError) as caught:
        runner.add(0, Generate(prompt=[65], cache="pin"), 0)
    assert (caught.value.code, caught.value.field) == ("unsupported", "cache")
    assert runner.cache_stats() is None
    assert [answer.token_ids for answer in ask(runner, Generate(prompt=[65, 66], max_tokens=2))] == [[67, 68]]


@pytest.mark.parametrize("family", ["llama", "qwen3_next"])
def test_a_report_says_where_a_prompt_ceases_to_be_known(family: str, runner_of: RunnerOf) -> None:
    runner = runner_of(family)
    runner.clear_cache()
    known, other = tokens(60, seed=8), 251
    asked: list[tuple[int, str | None] | None] = []
    for prompt, report in ((known, True), ([*known[:40], other, *known[41:]], True), (known[:30], False)):
        request = Generate(prompt=prompt, max_tokens=1, cache_report=report)
        admitted = runner.add(1, request, 0)
        runner.start_waiting()
        miss = admitted.cache_miss
        asked.append((miss.known_tokens, miss.token) if miss else None)
        while runner.table:
            runner.step()
    text = runner.preparer.format_logprob.text(other)
    assert asked == [(0, None), (40, text), None]
