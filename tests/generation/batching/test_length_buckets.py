"""Rows of very different length run in groups of their own, and nothing else changes."""

from collections.abc import Callable
from functools import cache
from typing import Any

import mlx.core as mx
import pytest

from lmwire_protocol import Generate
from lmwire_worker.generation.batching import Batch
from lmwire_worker.generation.batching import batch as batch_module
from lmwire_worker.generation.batching.batch import (
    FIRST_BUCKET_TOKENS,
    MIN_PADDING_TOKENS,
    assign_buckets,
    bucket_of,
)
from lmwire_worker.generation.prefill_policy import SATURATING_TOKENS, PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.generation_runners import EACH_FAMILY, Driver, FolderOf, RunnerOf, ask, choices, open_runner

pytestmark = pytest.mark.slow

BUCKET = FIRST_BUCKET_TOKENS // 4
PADDING = MIN_PADDING_TOKENS // 5
LONG = 325
MANY = 8


@pytest.fixture(autouse=True)
def even_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the chunks, so that groups of rows do not depend on the load of this machine.

    Where a model runs, buckets are smaller too: a processor takes long for prompts of a thousand tokens.
    """
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 64)
    monkeypatch.setattr(PrefillPolicy, "max_batch_tokens", lambda *_: SATURATING_TOKENS // 4)
    if "runner_of" in request.fixturenames:
        monkeypatch.setattr(batch_module, "FIRST_BUCKET_TOKENS", BUCKET)
        monkeypatch.setattr(batch_module, "assign_buckets", lambda lengths, _: assign_buckets(lengths, PADDING))


AnswerAlone = Callable[[int], list[int]]


@pytest.fixture(scope="module")
def answer_alone(runner_of: RunnerOf) -> AnswerAlone:
    """Answers of up to 60 tokens that short rows get alone, each computed once."""
    return cache(lambda number: ask(runner_of("qwen3"), short(number, max_tokens=60))[0].token_ids)


def prompt(number: int, length: int) -> list[int]:
    return [(7 * number + 3 * position) % 200 + 5 for position in range(length)]


def short(number: int, **fields: Any) -> Generate:
    fields = {"max_tokens": 30, "cache": "off", **fields}
    return Generate(prompt=prompt(number, 10 + number), ignore_eos=True, **fields)


def long(length: int = LONG, **fields: Any) -> Generate:
    fields = {"max_tokens": 12, "cache": "off", **fields}
    return Generate(prompt=prompt(50, length), ignore_eos=True, **fields)


def batch_of(runner: GenerationRunner) -> Batch:
    batch = runner.batch
    assert isinstance(batch, Batch)
    return batch


def groups(runner: GenerationRunner) -> list[int]:
    """Return the number of rows of each group."""
    return sorted(len(group.rows) for group in batch_of(runner).answer_groups)


def run_beside_a_long_one(driver: Driver, length: int = LONG) -> None:
    for number in range(MANY):
        driver.add(number, short(number, max_tokens=60))
    driver.add(MANY, long(length))
    while not driver.answers[MANY].token_ids:
        driver.step()


# Which rows run together.


def test_each_bucket_holds_rows_twice_as_long_as_the_one_before() -> None:
    assert [
        bucket_of(length)
        for length in (
            1,
            FIRST_BUCKET_TOKENS,
            FIRST_BUCKET_TOKENS + 1,
            2 * FIRST_BUCKET_TOKENS,
            4 * FIRST_BUCKET_TOKENS,
            4 * FIRST_BUCKET_TOKENS + 1,
        )
    ] == [
        0,
        0,
        1,
        1,
        2,
        3,
    ]


def test_rows_of_one_bucket_run_together() -> None:
    assert assign_buckets({1: 5, 2: 400, 3: 512}, padding=0) == {1: 0, 2: 0, 3: 0}


def test_many_short_rows_run_apart_from_a_long_one() -> None:
    rows = dict.fromkeys(range(31), 40) | {31: 8000}
    assert assign_buckets(rows, padding=MIN_PADDING_TOKENS) == dict.fromkeys(range(31), 0) | {31: bucket_of(8000)}


def test_two_rows_share_a_batch_when_it_costs_less_than_another_one() -> None:
    assert assign_buckets({1: 500, 2: 3000}, padding=MIN_PADDING_TOKENS) == {1: bucket_of(3000), 2: bucket_of(3000)}


def test_all_the_padding_of_a_batch_counts() -> None:
    rows = {1: 100, 2: 100, 3: 1100}
    assert set(assign_buckets(rows, padding=2000).values()) == {bucket_of(1100)}
    assert set(assign_buckets(rows, padding=1999).values()) == {0, bucket_of(1100)}


def test_rows_in_between_go_with_those_below_them_as_long_as_they_may() -> None:
    rows = {1: 100, 2: 1100, 3: 8000}
    assert assign_buckets(rows, padding=MIN_PADDING_TOKENS) == {
        1: bucket_of(1100),
        2: bucket_of(1100),
        3: bucket_of(8000),
    }


# What comes of it.


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_answers_in_length_buckets_are_those_given_alone(family: str, runner_of: RunnerOf) -> None:
    runner = runner_of(family)
    requests = [short(number, temperature=number % 2) for number in range(MANY)] + [long(), long(temperature=1.0)]
    together = ask(runner, *requests, seeds=range(len(requests)))
    for seed in (0, 1, MANY - 1, MANY, MANY + 1):
        assert together[seed].token_ids == ask(runner, requests[seed], seeds=[seed])[0].token_ids


def test_a_long_row_runs_apart_and_joins_the_others_when_they_are_few(
    runner_of: RunnerOf, answer_alone: AnswerAlone
) -> None:
    driver = Driver(runner_of("qwen3"))
    run_beside_a_long_one(driver)
    driver.step()
    assert groups(driver.runner) == [1, MANY]
    for number in range(MANY - 2):
        driver.remove(number)
    driver.step()
    assert groups(driver.runner) == [3]
    driver.finish()
    for number in (MANY - 2, MANY - 1):
        assert driver.answers[number].token_ids == answer_alone(number)


def test_a_row_that_joins_a_long_one_at_once_and_comes_back_loses_no_token(
    runner_of: RunnerOf, answer_alone: AnswerAlone
) -> None:
    """The row leaves an empty group after its first token. That group must forget the row."""
    runner = runner_of("qwen3")
    driver = Driver(runner)
    driver.add(0, long(max_tokens=60))
    while not driver.answers[0].token_ids:
        driver.step()
    driver.add(1, short(1, max_tokens=60))
    driver.steps(6)
    assert groups(runner) == [2]
    for number in range(2, MANY):
        driver.add(number, short(number, max_tokens=60))
    while groups(runner) != [1, MANY - 1]:
        driver.step()
    driver.finish()
    assert driver.answers[1].token_ids == answer_alone(1)


def test_rows_that_part_and_meet_again_go_on_where_they_were(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    sampled = {"temperature": 1.0, "repetition_penalty": 1.2, "max_tokens": 70}
    driver = Driver(runner)
    for number in range(MANY):
        driver.add(number, short(number, **sampled), seed=number)
    driver.steps(12)
    for key in (20, 21):
        driver.add(key, long(max_tokens=9))
        while key in driver.running:
            driver.step()
    driver.finish()
    for number in (0, MANY // 2, MANY - 1):
        assert driver.answers[number].token_ids == ask(runner, short(number, **sampled), seeds=[number])[0].token_ids


def test_rows_move_up_as_they_grow(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    growing = [Generate(prompt=prompt(n, BUCKET - 3 - n), max_tokens=20, ignore_eos=True) for n in range(3)]
    driver = Driver(runner)
    for key, request in enumerate([*growing, short(9, max_tokens=8), short(9, max_tokens=14)]):
        driver.add(key, request)
    answers = driver.finish()
    for key, request in enumerate(growing):
        assert answers[key].token_ids == ask(runner, request)[0].token_ids


def test_a_group_takes_no_memory_for_rows_of_another(runner_of: RunnerOf) -> None:
    driver = Driver(runner_of("llama"))
    run_beside_a_long_one(driver, 1300)  # a cache grows by 256 tokens at a time
    driver.step()
    taken = {len(group.rows): group.nbytes for group in batch_of(driver.runner).answer_groups}
    assert taken[MANY] < MANY * taken[1] / 4
    for key in [*driver.running]:
        driver.remove(key)


def test_what_else_is_in_memory_does_not_decide_which_rows_run_together(folder_of: FolderOf) -> None:
    alone = open_runner(folder_of("llama"))
    beside = mx.zeros(20 * 2**20)
    mx.eval(beside)
    assert open_runner(folder_of("llama")).max_padding_tokens == alone.max_padding_tokens


def test_a_short_prompt_does_not_wait_for_a_long_one(runner_of: RunnerOf) -> None:
    driver = Driver(runner_of("mamba"))  # whose prompts are processed one at a time
    driver.add(0, long())
    driver.step()
    driver.add(1, short(1))
    while not driver.answers[1].token_ids:
        driver.step()
    assert not driver.answers[0].token_ids
    done, total = driver.answers[0].prefilled[-1]
    assert done < total
    driver.finish()


def test_of_two_long_prompts_one_is_done_before_the_other_is_started(runner_of: RunnerOf) -> None:
    driver = Driver(runner_of("qwen3"))
    driver.add(0, long())
    driver.add(1, Generate(prompt=prompt(51, 500), max_tokens=5, cache="off"))
    while not driver.answers[0].token_ids:
        driver.step()
    assert not driver.answers[1].prefilled
    driver.finish()


def test_a_first_token_is_delivered_before_the_next_prompt_is_processed(
    runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrefillPolicy, "max_batch_tokens", lambda *_: 1)
    driver = Driver(runner_of("qwen3"))
    driver.add(0, short(0))
    driver.add(1, short(1))
    while not driver.answers[0].token_ids:
        driver.step()
    assert not driver.answers[1].prefilled
    driver.finish()


def test_a_prompt_that_is_cached_does_not_wait_for_those_that_are_not(runner_of: RunnerOf) -> None:
    driver = Driver(runner_of("qwen3"))
    cached = Generate(prompt=prompt(60, 40), max_tokens=3, ignore_eos=True)
    ask(driver.runner, cached)
    driver.add(0, long())
    driver.add(1, cached)
    while not driver.answers[1].token_ids:
        driver.step()
    done, total = driver.answers[0].prefilled[-1]
    assert done < total
    driver.finish()


def test_short_prompts_are_done_together(runner_of: RunnerOf) -> None:
    driver = Driver(runner_of("qwen3"))
    for number in range(MANY):
        driver.add(number, short(number))
    driver.step()
    assert all(answer.prefilled for answer in driver.answers.values())
    driver.finish()


def test_choices_of_a_long_prompt_share_it_beside_short_rows(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    driver = Driver(runner)
    for number in range(MANY):
        driver.add(number, short(number))
    driver.add(MANY, long(n=3, temperature=1.0), seed=4)
    driver.finish()
    assert [a.token_ids for a in driver.choices[MANY]] == [
        a.token_ids for a in choices(runner, long(n=3, temperature=1.0), seed=4)
    ]


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_cancel_ends_a_row_of_any_batch(steps: int, runner_of: RunnerOf, answer_alone: AnswerAlone) -> None:
    driver = Driver(runner_of("qwen3"))
    run_beside_a_long_one(driver)
    driver.steps(steps)
    driver.remove(MANY)
    driver.remove(0)
    driver.finish()
    for number in range(1, MANY):
        assert driver.answers[number].token_ids == answer_alone(number)
    assert groups(driver.runner) == []
