"""Tests of forced tokens: one step computes all of them, and the answer is the same as step by step."""

from typing import Any

import pytest

from lmwire_protocol import ChoiceFormat, Generate, RegexFormat
from lmwire_worker.generation.batching.decoding import MAX_FOLLOWING_TOKENS
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.forced_tokens import TRIP, step_by_step
from support.runners.generation_runners import Driver, RunnerOf, ask

pytestmark = pytest.mark.slow


@pytest.fixture
def runner(runner_of: RunnerOf) -> GenerationRunner:
    return runner_of("qwen3")


def request(**fields: Any) -> Generate:
    fields = {"prompt": "Where to?", "max_tokens": 60, "format": TRIP, "cache": "off", **fields}
    return Generate(**fields)


def count_steps(runner: GenerationRunner, request: Generate) -> int:
    driver, steps = Driver(runner), 0
    driver.add(0, request)
    while driver.running:
        driver.step()
        steps += 1
    return steps


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"temperature": 1.2},
        {"temperature": 1.2, "repetition_penalty": 1.3, "frequency_penalty": 0.5},
        {"temperature": 1.2, "min_tokens": 5, "top_k": 20, "xtc_probability": 0.5},
        {"temperature": 1.2, "dry_multiplier": 2, "dry_allowed_length": 1},
        {"format": RegexFormat(pattern="[ab]{3}(-fixed-text-){2}[ab]")},
        {"format": ChoiceFormat(choices=["a long answer that is forced", "another one that is forced"])},
        {"logprobs": True, "top_logprobs": 3},
        {"n": 3, "temperature": 1.0},
    ],
    ids=["greedy", "sampled", "penalties", "limits", "dry", "pattern", "choice", "logprobs", "choices"],
)
def test_the_answer_is_the_same_as_step_by_step(runner: GenerationRunner, fields: dict[str, Any]) -> None:
    (answer,), (expected,) = ask(runner, request(**fields)), step_by_step(runner, request(**fields))
    assert answer.error is None
    assert answer == expected


def test_most_steps_of_json_are_saved(runner: GenerationRunner) -> None:
    (answer,) = ask(runner, request())
    assert count_steps(runner, request()) < len(answer.token_ids) / 2


def test_a_step_computes_a_bounded_number_of_forced_tokens(runner: GenerationRunner) -> None:
    long = request(format=ChoiceFormat(choices=["ab" * 300]), max_tokens=400)
    (answer,) = ask(runner, long)
    assert answer == step_by_step(runner, long)[0]
    assert count_steps(runner, long) >= len(answer.token_ids) / (MAX_FOLLOWING_TOKENS + 1)


@pytest.mark.parametrize("tokens", range(1, 8))
def test_no_more_tokens_come_than_were_asked_for(runner: GenerationRunner, tokens: int) -> None:
    (answer,) = ask(runner, request(max_tokens=tokens))
    assert (len(answer.token_ids), answer.finish_reason) == (tokens, "length")
    assert answer == step_by_step(runner, request(max_tokens=tokens))[0]


def test_a_stop_string_inside_forced_text_ends_the_answer(runner: GenerationRunner) -> None:
    (answer,) = ask(runner, request(stop=["ty"]))
    assert (answer.text.endswith("ci"), answer.finish_reason) == (True, "stop")
    assert answer == step_by_step(runner, request(stop=["ty"]))[0]


def test_a_row_that_others_join_and_leave_goes_on_the_same(runner: GenerationRunner) -> None:
    long = request(format=RegexFormat(pattern="([ab]-fixed-text-){6}"), temperature=1.0, max_tokens=120)
    (expected,) = step_by_step(runner, long)
    for joins in (1, 2, 3, 5):
        driver = Driver(runner)
        driver.add(0, long)
        driver.steps(joins)
        driver.add(1, request(max_tokens=4))
        assert driver.finish()[0] == expected


def test_what_was_forced_is_cached_like_the_rest(runner: GenerationRunner) -> None:
    runner.clear_cache()
    prompt = [(7 * position) % 200 + 5 for position in range(80)]
    (answer,) = ask(runner, request(prompt=prompt, cache="on"))
    follow = Generate(prompt=[*prompt, *answer.token_ids, 9, 9], max_tokens=8)
    (warm,) = ask(runner, follow)
    runner.clear_cache()
    (cold,) = ask(runner, follow)
    assert warm == cold
