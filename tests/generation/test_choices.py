"""Several answers to one prompt, which is processed once."""

from pathlib import Path

import pytest

from lmwire_protocol import Generate, limits
from lmwire_worker.engine.interface import TokenDelta
from support.models.misbehaving_models import RAISES, write_misbehaving_model
from support.runners.generation_runners import EACH_FAMILY, Driver, RunnerOf, ask, choices, open_runner

pytestmark = pytest.mark.slow

SAMPLED = {"temperature": 1.0, "max_tokens": 20}


@pytest.mark.parametrize("family", EACH_FAMILY)
@pytest.mark.parametrize("length", [1, 2, 150])
def test_each_choice_is_what_its_own_seed_gives_alone(family: str, length: int, runner_of: RunnerOf) -> None:
    prompt = [(7 * n) % 200 + 5 for n in range(length)]
    together = choices(runner_of(family), Generate(prompt=prompt, n=3, **SAMPLED), seed=11)
    alone = [ask(runner_of(family), Generate(prompt=prompt, **SAMPLED), seeds=[11 + n])[0] for n in range(3)]
    assert [answer.token_ids for answer in together] == [answer.token_ids for answer in alone]
    assert len({tuple(answer.token_ids) for answer in together}) > 1, "different seeds differ"


def test_choices_run_beside_other_requests(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    several = Generate(prompt="one two three", n=6, **SAMPLED)
    others = [Generate(prompt=f"another {n} " * 20, **SAMPLED) for n in range(4)]
    driver = Driver(runner)
    driver.add(0, others[0], 1)
    driver.steps(3)
    driver.add(1, several, 5)
    for key, other in enumerate(others[1:], 2):
        driver.add(key, other, key)
        driver.step()
    driver.finish()
    assert [a.token_ids for a in driver.choices[1]] == [a.token_ids for a in choices(runner, several, seed=5)]
    for key, other, seed in ((0, others[0], 1), (2, others[1], 2), (3, others[2], 3), (4, others[3], 4)):
        assert driver.answers[key].token_ids == ask(runner, other, seeds=[seed])[0].token_ids


def test_the_prompt_is_processed_once(runner_of: RunnerOf) -> None:
    first, *others = choices(runner_of("qwen3"), Generate(prompt=[9] * 300, n=4, max_tokens=3))
    assert first.prefilled[-1] == (300, 300)
    assert not any(answer.prefilled for answer in others)


def test_choices_end_one_by_one(runner_of: RunnerOf) -> None:
    request = Generate(prompt="ka lo mi", n=8, temperature=1.5, max_tokens=200, stop=["a"])
    answers = choices(runner_of("qwen3"), request)
    assert all("a" not in answer.text for answer in answers)
    assert len({answer.generated for answer in answers}) > 1


def test_seeds_wrap_around_to_0_after_the_largest(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    _, second = choices(runner, Generate(prompt="ka", n=2, **SAMPLED), seed=limits.MAX_INT)
    assert second.token_ids == ask(runner, Generate(prompt="ka", **SAMPLED), seeds=[0])[0].token_ids


def test_with_max_tokens_0_every_choice_is_empty(runner_of: RunnerOf) -> None:
    answers = choices(runner_of("qwen3"), Generate(prompt="ka lo", n=3, max_tokens=0))
    assert [(answer.finish_reason, answer.token_ids) for answer in answers] == [("length", [])] * 3


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 9])
def test_a_cancel_ends_all_of_them_wherever_they_stand(steps: int, runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    driver = Driver(runner)
    driver.add(0, Generate(prompt=[9] * 40, n=4, max_tokens=50, ignore_eos=True))
    driver.add(1, Generate(prompt="neighbour", max_tokens=30))
    driver.steps(steps)
    driver.remove(0)
    assert driver.finish()[1].token_ids == ask(runner, Generate(prompt="neighbour", max_tokens=30))[0].token_ids


def test_a_model_whose_rows_cannot_run_together_gives_its_choices_in_turn(tmp_path: Path) -> None:
    runner = open_runner(write_misbehaving_model(tmp_path / "custom", RAISES), trust_remote_code=True)
    runner.max_batch_size = 1  # as for a model whose caches cannot be joined
    answers = choices(runner, Generate(prompt=[65, 66], n=3, max_tokens=4))
    assert [answer.token_ids for answer in answers] == [[67, 68, 69, 70]] * 3


def test_the_text_released_by_a_cancel_names_its_choice(runner_of: RunnerOf) -> None:
    runner = runner_of("qwen3")
    runner.add(0, Generate(prompt=[9] * 4, n=3, max_tokens=50, ignore_eos=True, cache="off"), 0)
    for _ in range(6):
        runner.step()
    remaining = runner.remove(0)
    assert sorted({delta.choice for delta in remaining if isinstance(delta, TokenDelta)}) == [0, 1, 2]
