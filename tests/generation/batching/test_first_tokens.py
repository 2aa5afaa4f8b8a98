"""A token is delivered before the next step, if that step would delay it or is not needed."""

from typing import Any

import mlx.core as mx
import pytest

from lmwire_protocol import Generate
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import GenerationRunner
from support.runners.generation_runners import Driver, RunnerOf, ask_alone

pytestmark = pytest.mark.slow

PROMPT = [(3 * position) % 200 + 5 for position in range(20)]


class Passes:
    """Counter of a network's forward passes. One of them may fail."""

    def __init__(self, network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.fails_at = 0
        inner = type(network).__call__

        def counted(network: Any, *args: Any, **options: Any) -> mx.array:
            self.made += 1
            if self.made == self.fails_at:
                raise RuntimeError("this pass only")
            return inner(network, *args, **options)

        monkeypatch.setattr(type(network), "__call__", counted)


@pytest.fixture(autouse=True)
def whole_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All prompts are processed in one step, however busy this machine is."""
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 256)


@pytest.fixture
def runner(runner_of: RunnerOf) -> GenerationRunner:
    runner = runner_of("qwen3")
    runner.clear_cache()
    return runner


@pytest.fixture
def passes(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> Passes:
    return Passes(runner.network, monkeypatch)


def request(max_tokens: int, **fields: Any) -> Generate:
    return Generate(prompt=PROMPT, max_tokens=max_tokens, **fields)


def driver_after(runner: GenerationRunner, max_tokens: int) -> Driver:
    """Forward passes of a runner that has cached all of the prompt but its last token."""
    driver = Driver(runner)
    driver.add(0, request(max_tokens))
    driver.finish()
    return driver


def step_until_first_token(driver: Driver, key: int) -> dict[int, int]:
    """Return the number of tokens that each request had before the first token of `key`."""
    delivered: dict[int, int] = {}
    while not driver.answers[key].token_ids:
        delivered = {each: len(answer.token_ids) for each, answer in driver.answers.items()}
        driver.step()
    return delivered


def test_the_first_token_is_delivered_before_the_second_is_started(runner: GenerationRunner, passes: Passes) -> None:
    driver = Driver(runner)
    driver.add(0, request(5))
    step_until_first_token(driver, 0)
    assert passes.made == 2, "the prompt but for its last token, and that"
    driver.finish()


@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_no_pass_runs_after_the_last_possible_token(tokens: int, runner: GenerationRunner, passes: Passes) -> None:
    driver = Driver(runner)
    driver.add(0, request(tokens))
    assert len(driver.finish()[0].token_ids) == tokens
    assert passes.made == 1 + tokens


def test_running_rows_get_each_token_once(runner: GenerationRunner) -> None:
    requests = [
        Generate(prompt=PROMPT[n:], max_tokens=12, temperature=0.8, logprobs=True, cache="off") for n in range(4)
    ]
    alone = ask_alone(runner, *requests, seeds=range(4))
    driver = Driver(runner)
    for key, each in enumerate(requests):
        driver.add(key, each, key)
        delivered = step_until_first_token(driver, key)
        assert all(len(driver.answers[other].token_ids) == delivered[other] + 1 for other in range(key + 1))
    assert list(driver.finish().values()) == alone


def test_answers_go_on_while_one_after_another_begins(runner: GenerationRunner) -> None:
    """Prompts that are known but for their last token begin without a slice, and could keep the others waiting."""
    driver = driver_after(runner, 1)
    driver.add(1, request(30))
    step_until_first_token(driver, 1)
    for key in range(2, 12):
        before = len(driver.answers[1].token_ids)
        driver.add(key, request(1))
        step_until_first_token(driver, key)
        driver.step()
        assert len(driver.answers[1].token_ids) > before
    driver.finish()


def test_the_next_token_is_started_before_another_prompt(runner: GenerationRunner) -> None:
    driver = driver_after(runner, 3)
    driver.add(1, request(5))
    step_until_first_token(driver, 1)
    driver.add(2, Generate(prompt=PROMPT[::-1], max_tokens=5))
    driver.step()
    assert driver.answers[2].prefilled == []
    driver.step()
    assert driver.answers[2].prefilled != []
    driver.finish()


def test_a_request_of_one_token_keeps_the_next_one_waiting_for_nothing(runner: GenerationRunner) -> None:
    driver = driver_after(runner, 1)
    driver.add(1, Generate(prompt=PROMPT[::-1], max_tokens=5))
    driver.step()
    assert driver.answers[1].prefilled != []
    driver.finish()


@pytest.mark.parametrize("at", [2, 3, 4, 5])
def test_a_step_that_fails_after_the_first_token_repeats_and_loses_nothing(
    at: int, runner: GenerationRunner, passes: Passes
) -> None:
    alone = ask_alone(runner, request(5, temperature=0.8, cache="off"), seeds=[3])
    passes.made, passes.fails_at = 0, at
    driver = Driver(runner)
    driver.add(0, request(5, temperature=0.8, cache="off"), 3)
    assert [driver.finish()[0]] == alone
    assert passes.made > at
