"""A runner keeps to its memory: rows wait if they do not fit, end if they outgrow it, and fail alone."""

from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from lmwire_protocol import Generate, Load, RequestError
from lmwire_worker.engine.interface import InsufficientMemory
from lmwire_worker.generation.admission import MemoryBudget, RowCost
from lmwire_worker.generation.language_model import open_shared_weights
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.models.model_info import describe_model
from lmwire_worker.models.tokenizer_loading import load_tokenizer
from lmwire_worker.models.weights import read_weights
from random_model import write_model
from support.models.misbehaving_models import MARK, write_misbehaving_model
from support.runners.generation_runners import Driver, ask, open_runner

pytestmark = pytest.mark.slow

FEW_ROWS = f"""
        if tokens.shape[0] > 3 or (tokens == {MARK}).any().item():
            raise RuntimeError("[malloc] Unable to allocate 1234 bytes.")
        return logits
"""
"""A model with memory for three rows, and none for a row that contains the placeholder."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that never ends its turn."""
    return write_model(tmp_path_factory.mktemp("models") / "endless", "llama", end_scale=0)


@pytest.fixture
def runner_for(folder: Path) -> Callable[[int], GenerationRunner]:
    """Open a runner with memory for a number of tokens of one row."""

    def runner_for(tokens: int) -> GenerationRunner:
        base = open_shared_weights(folder, trust_remote_code=False)
        network = base.new_network()
        read_weights(network, folder, lambda *_: None)
        tokenizer = load_tokenizer(folder, base.config, trust_remote_code=False)
        cost = RowCost.measure(network)
        budget = MemoryBudget(cost.bytes(tokens), 0, 0, cost)
        return GenerationRunner(network, tokenizer, describe_model(folder, base.config, network, tokenizer), budget)

    return runner_for


def prompt(length: int, first: int = 300) -> list[int]:
    return [first, *range(300, 299 + length)] if length < 200 else [first, *[301] * (length - 1)]


# Requests that start.


def test_a_request_that_does_not_fit_beside_another_waits_and_caches_nothing(
    runner_for: Callable[[int], GenerationRunner],
) -> None:
    driver = Driver(runner_for(1024))
    driver.add(0, Generate(prompt=prompt(100), max_tokens=20))
    with pytest.raises(InsufficientMemory):
        driver.runner.add(1, Generate(prompt=prompt(600), max_tokens=20, cache="off"), 0)
    driver.finish()
    driver.add(1, Generate(prompt=prompt(600), max_tokens=20))
    assert driver.finish()[1].generated == 20


def test_a_request_that_never_fits_is_refused(runner_for: Callable[[int], GenerationRunner]) -> None:
    with pytest.raises(RequestError) as refusal:
        runner_for(1024).add(0, Generate(prompt=prompt(1100), max_tokens=20), 0)
    assert refusal.value.code == "out_of_memory"


def test_the_cache_frees_memory_for_a_request(runner_for: Callable[[int], GenerationRunner]) -> None:
    runner = runner_for(1024)
    ask(runner, Generate(prompt=prompt(250, 1), max_tokens=1))
    assert (stats := runner.cache_stats()) and stats.bytes > 0 and stats.evictions == 0
    ask(runner, Generate(prompt=prompt(900, 2), max_tokens=1))
    assert (stats := runner.cache_stats()) and stats.evictions > 0


def test_a_request_that_does_not_fit_beside_the_pinned_is_refused(
    runner_for: Callable[[int], GenerationRunner],
) -> None:
    runner = runner_for(1024)
    ask(runner, Generate(prompt=prompt(250, 1), max_tokens=1, cache="pin"))
    with pytest.raises(RequestError, match="pinned"):
        runner.add(0, Generate(prompt=prompt(900, 2), max_tokens=1), 0)
    assert runner.clear_cache() > 0
    assert ask(runner, Generate(prompt=prompt(900, 2), max_tokens=1))[0].generated == 1


def test_a_prompt_that_cannot_be_pinned_is_refused_with_the_numbers(
    runner_for: Callable[[int], GenerationRunner],
) -> None:
    runner = runner_for(1024)
    ask(runner, Generate(prompt=prompt(100, 1), max_tokens=1, cache="pin"))
    with pytest.raises(RequestError) as refusal:
        runner.add(0, Generate(prompt=prompt(180, 2), max_tokens=1, cache="pin"), 0)
    assert (refusal.value.code, refusal.value.field) == ("out_of_memory", "cache")
    assert "pin 180 tokens" in refusal.value.message and refusal.value.message.count("MiB") == 3
    assert ask(runner, Generate(prompt=prompt(180, 2), max_tokens=1))[0].generated == 1
    assert ask(runner, Generate(prompt=prompt(130, 2), max_tokens=1, cache="pin"))[0].generated == 1


# Requests that go on.


def test_a_row_that_outgrows_the_memory_ends_with_capacity(runner_for: Callable[[int], GenerationRunner]) -> None:
    (answer,) = ask(runner_for(512), Generate(prompt=prompt(256), max_tokens=2000))
    assert answer.finish_reason == "capacity"
    assert answer.generated == 512 - 256


def test_a_capacity_end_keeps_the_start_of_the_answer(runner_for: Callable[[int], GenerationRunner]) -> None:
    (short,) = ask(runner_for(512), Generate(prompt=prompt(256), max_tokens=270))
    (whole,) = ask(runner_for(4096), Generate(prompt=prompt(256), max_tokens=270))
    assert short.finish_reason == "capacity"
    assert whole.token_ids[: len(short.token_ids)] == short.token_ids
    assert whole.text.startswith(short.text)


def test_when_memory_runs_out_the_longest_answer_ends_and_others_continue(
    runner_for: Callable[[int], GenerationRunner],
) -> None:
    driver = Driver(runner_for(1024))
    driver.add(0, Generate(prompt=prompt(256), max_tokens=270))
    driver.add(1, Generate(prompt=prompt(10), max_tokens=270))
    answers = driver.finish()
    assert [(answers[key].finish_reason, answers[key].generated) for key in (0, 1)] == [
        ("capacity", 256),
        ("length", 270),
    ]


def test_all_choices_of_a_request_end_together(runner_for: Callable[[int], GenerationRunner]) -> None:
    driver = Driver(runner_for(1024))
    driver.add(0, Generate(prompt=prompt(256), max_tokens=800, n=2, temperature=1.0, ignore_eos=True))
    driver.finish()
    assert [choice.finish_reason for choice in driver.choices[0]] == ["capacity"] * 2
    assert max(choice.generated for choice in driver.choices[0]) == 256


# Memory that cannot be had.


def test_when_memory_runs_out_in_a_step_one_request_ends(tmp_path: Path) -> None:
    runner = open_runner(write_misbehaving_model(tmp_path / "m", FEW_ROWS), trust_remote_code=True)
    driver = Driver(runner)
    for key in range(5):
        driver.add(key, Generate(prompt=[65] * (10 - key), max_tokens=40))
    answers = driver.finish()
    codes = [error and error.code for error in (answers[key].error for key in range(5))]
    assert codes == ["out_of_memory"] * 2 + [None] * 3
    assert [answers[key].generated for key in (2, 3, 4)] == [40] * 3


def test_a_request_that_never_fits_into_memory_ends_alone(tmp_path: Path) -> None:
    runner = open_runner(write_misbehaving_model(tmp_path / "m", FEW_ROWS), trust_remote_code=True)
    driver = Driver(runner)
    driver.add(0, Generate(prompt=[65], max_tokens=40))
    driver.add(1, Generate(prompt=[MARK], max_tokens=40))
    answers = driver.finish()
    assert answers[1].error and answers[1].error.code == "out_of_memory"
    assert answers[0].generated == 40


# Models.


def load(folder: Path, limit: int, replaced: list[bool], *, force: bool = False) -> GenerationRunner:
    engine = MlxModelLoader(limit)
    engine.prepare()
    runner = engine.open(
        Load(path=str(folder), force=force), lambda *_: None, release_current_model=lambda: replaced.append(True)
    )
    assert isinstance(runner, GenerationRunner)
    return runner


def test_a_model_that_does_not_fit_costs_nobody_the_present_one(folder: Path) -> None:
    replaced: list[bool] = []
    before = mx.get_active_memory()
    with pytest.raises(RequestError) as refusal:
        load(folder, 100_000, replaced)
    assert refusal.value.code == "out_of_memory"
    assert not replaced
    assert mx.get_active_memory() - before < 100_000, "no weight was read"


def test_a_model_that_is_forced_in_gives_short_answers(folder: Path) -> None:
    runner = load(folder, 100_000, [], force=True)
    assert ask(runner, Generate(prompt=prompt(100), max_tokens=50))[0].generated == 50
    assert ask(runner, Generate(prompt=prompt(750), max_tokens=2000))[0].finish_reason == "capacity"
    runner.close()
