"""A request at which the model fails ends alone, wherever the failure comes in a shared step."""

from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import Generate, LarkFormat, RegexFormat
from lmwire_worker.generation.runner import GenerationRunner
from support.models.misbehaving_models import MARK, RAISES, write_misbehaving_model
from support.runners.generation_runners import Driver, chat, choices, open_runner

pytestmark = pytest.mark.slow

TOGETHER = """
        if tokens.shape[0] > 3:
            raise RuntimeError("too many")
        return logits
"""
"""A model that fails for four rows at once, and for no single row."""


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> GenerationRunner:
    return open_runner(write_misbehaving_model(tmp_path_factory.mktemp("m") / "raises", RAISES), trust_remote_code=True)


@pytest.fixture(scope="module")
def built_in() -> GenerationRunner:
    return open_runner(Path("builtin:tiny"))


def following(token: int, count: int) -> list[int]:
    """The model's answer: each token is the one before it, plus 1."""
    return [(token + n) % 256 for n in range(1, count + 1)]


@pytest.mark.parametrize("poison", [[MARK], [65, MARK, 66], [MARK - 7], [65] * 300 + [MARK]])
def test_a_request_that_makes_the_model_fail_ends_alone(poison: list[int], runner: GenerationRunner) -> None:
    driver = Driver(runner)
    for key in range(4):
        driver.add(key, Generate(prompt=[65 + key] * (key + 1), max_tokens=40))
    driver.steps(5)
    driver.add(4, Generate(prompt=poison, max_tokens=40))
    driver.add(5, Generate(prompt=[80], max_tokens=40, n=3))
    answers = driver.finish()
    assert answers[4].error is not None
    assert answers[4].error.code == "engine_error"
    assert "the model's own trouble" in answers[4].error.message
    for key in range(4):
        assert answers[key].token_ids == following(65 + key, 40)
    assert [answer.token_ids for answer in driver.choices[5]] == [following(80, 40)] * 3


def test_a_request_fails_with_all_of_its_choices(runner: GenerationRunner) -> None:
    driver = Driver(runner)
    driver.add(0, Generate(prompt=[MARK - 5], n=4, max_tokens=40))
    driver.add(1, Generate(prompt=[65], max_tokens=40))
    answers = driver.finish()
    assert answers[0].error is not None
    assert answers[1].token_ids == following(65, 40)


def test_constraints_continue_where_they_were(runner: GenerationRunner) -> None:
    constrained = Generate(
        prompt=[65], max_tokens=40, n=2, temperature=3.0, format=RegexFormat(pattern="([a-z][0-9]){12}")
    )
    alone = [answer.token_ids for answer in choices(runner, constrained, seed=7)]
    driver = Driver(runner)
    driver.add(0, constrained, seed=7)
    driver.steps(6)
    driver.add(1, Generate(prompt=[MARK - 4], max_tokens=40))
    answers = driver.finish()
    assert answers[1].error is not None
    assert [answer.token_ids for answer in driver.choices[0]] == alone


def test_banned_strings_and_dry_continue_where_they_were(runner: GenerationRunner) -> None:
    fields: dict[str, Any] = {"max_tokens": 40, "n": 2, "ignore_eos": True}
    requests = [
        Generate(prompt=[70], banned_strings=["pqr", "STU"], **fields),
        Generate(prompt=[70, 71, 90, 70], dry_multiplier=90, dry_base=9, dry_allowed_length=1, **fields),
    ]
    alone = [[answer.token_ids for answer in choices(runner, request)] for request in requests]
    for steps in range(3, 15):
        driver = Driver(runner)
        for key, request in enumerate(requests):
            driver.add(key, request)
        driver.steps(steps)
        driver.add(2, Generate(prompt=[MARK], max_tokens=40))
        answers = driver.finish()
        assert answers[2].error is not None
        assert [[answer.token_ids for answer in driver.choices[key]] for key in (0, 1)] == alone, steps


def test_a_grammar_that_fails_on_the_way_ends_its_own_request(built_in: GenerationRunner) -> None:
    failing = chat("Hello!", max_tokens=20, reasoning="off", format=LarkFormat(grammar='start: "<tool_call>" /[a-z]+/'))
    neighbours = [chat("Hello!", max_tokens=20), chat("What is 2 + 3?", max_tokens=20, temperature=1.0, n=2)]
    alone = [[answer.token_ids for answer in choices(built_in, neighbour)] for neighbour in neighbours]
    driver = Driver(built_in)
    for key, request in enumerate([neighbours[0], failing, neighbours[1]]):
        driver.add(key, request)
    answers = driver.finish()
    assert answers[1].error is not None
    assert "could not be held to its grammar" in answers[1].error.message
    assert (answers[1].error.code, answers[1].error.field) == ("invalid_request", "format"), "it is the host's mistake"
    assert [[answer.token_ids for answer in driver.choices[key]] for key in (0, 2)] == alone


def test_two_faulty_requests_fail_and_a_third_continues(runner: GenerationRunner) -> None:
    driver = Driver(runner)
    for key, first in enumerate((MARK - 5, MARK - 5, 65)):
        driver.add(key, Generate(prompt=[first], max_tokens=30))
    answers = driver.finish()
    assert [answer.error is None for answer in answers.values()] == [False, False, True]
    assert answers[2].token_ids == following(65, 30)


def test_a_prompt_that_waits_for_a_faulty_prefix_is_tried_alone(runner: GenerationRunner) -> None:
    driver = Driver(runner)
    for key, first in enumerate((65, 65, 70)):
        ill = [first] * 40 + [MARK] + [first] * 60
        driver.add(key, Generate(prompt=ill if first == 65 else [first], max_tokens=9))
    answers = driver.finish()
    assert [answer.error is None for answer in answers.values()] == [False, False, True]
    assert answers[2].token_ids == following(70, 9)


def test_a_request_can_be_cancelled_while_it_restarts(runner: GenerationRunner) -> None:
    driver = Driver(runner)
    driver.add(0, Generate(prompt=[65], max_tokens=30))
    driver.add(1, Generate(prompt=[MARK - 3], max_tokens=30))
    driver.add(2, Generate(prompt=[70], max_tokens=30))
    driver.steps(5)  # the last of them failed
    driver.remove(0)
    answers = driver.finish()
    assert answers[1].error is not None
    assert answers[2].token_ids == following(70, 30)


def test_rows_that_fail_only_together_all_fail_and_the_runner_goes_on(tmp_path: Path) -> None:
    runner = open_runner(write_misbehaving_model(tmp_path / "together", TOGETHER), trust_remote_code=True)
    driver = Driver(runner)
    for key in range(5):
        driver.add(key, Generate(prompt=[65 + key], max_tokens=9))
    assert all(answer.error is not None for answer in driver.finish().values())
    driver.add(9, Generate(prompt=[70], max_tokens=9))
    assert driver.finish()[9].token_ids == following(70, 9)
