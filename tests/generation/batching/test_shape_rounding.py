"""On a device that prepares its kernels for each shape, prompts are processed in few shapes, and nothing else changes.

CUDA is such a device. These tests treat the processor that they run on as one.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from lmwire_protocol import Generate
from lmwire_worker.generation import prefill_policy as policy
from lmwire_worker.generation.batching import Batch, batch, round_shape
from lmwire_worker.generation.batching.padding import MAX_ROUNDED_TOKENS
from lmwire_worker.generation.prefill_policy import PrefillPolicy
from lmwire_worker.generation.runner import MAX_PREFILL_BATCH, GenerationRunner
from support.runners.generation_runners import (
    FAMILIES,
    Driver,
    FolderOf,
    RunnerOf,
    SliceShape,
    ask,
    choices,
    open_runner,
    watch_chunks,
)

pytestmark = pytest.mark.slow

LENGTHS = (3, 9, 17, 40, 41, 90, 150)


@pytest.fixture(autouse=True)
def even_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the chunks, so that groups of prompts do not depend on the load of this machine."""
    monkeypatch.setattr(PrefillPolicy, "chunk_size", lambda *_: 64)
    monkeypatch.setattr(PrefillPolicy, "max_batch_tokens", lambda *_: 1024)


@pytest.fixture
def runner(runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch) -> Iterator[GenerationRunner]:
    """One that takes this device for such a one, with nothing cached."""
    yield from preparing(runner_of("qwen3"), monkeypatch)


def preparing(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[GenerationRunner]:
    monkeypatch.setattr(batch, "compiles_each_shape", lambda: True)
    runner.clear_cache()
    runner.discard_batch()
    yield runner
    runner.discard_batch()


@pytest.fixture
def shapes(runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch) -> list[SliceShape]:
    """Shapes of all chunks that the model has computed."""
    return watch_chunks(runner, monkeypatch)


def request(length: int, **fields: Any) -> Generate:
    prompt = [(7 * length + 3 * position) % 200 + 5 for position in range(length)]
    fields = {"max_tokens": 8, "cache": "off", **fields}
    return Generate(prompt=prompt, ignore_eos=True, **fields)


def prompt_of(request: Generate) -> list[int]:
    assert isinstance(request.prompt, list)
    return request.prompt


# Which shapes there are.


def test_a_shape_is_at_least_as_large_as_its_content() -> None:
    for rows, length in itertools.product(range(1, 17), range(1, 300)):
        wide, long = round_shape(rows, length)
        assert wide >= rows and long >= length


def test_there_are_few_shapes() -> None:
    lengths = {round_shape(1, length)[1] for length in range(1, 1025)}
    assert sorted(lengths)[:8] == [16, 32, 48, 64, 80, 96, 112, 128]
    assert len(lengths) == 20
    assert {round_shape(rows, 16)[0] for rows in range(1, 17)} == {1, 2, 3, 4, 6, 8, 12, 16}


def test_little_padding_is_added_to_a_long_chunk() -> None:
    assert all(round_shape(1, length)[1] <= 1.25 * length for length in range(64, MAX_ROUNDED_TOKENS))


def test_a_chunk_so_large_that_compiling_costs_less_is_not_rounded() -> None:
    assert round_shape(9, 300) == (12, 320)
    assert round_shape(9, 321) == (9, 384), "twelve of them would be too many"
    assert round_shape(9, 450) == (9, 450)
    assert round_shape(1, MAX_ROUNDED_TOKENS + 1) == (1, MAX_ROUNDED_TOKENS + 1)


def test_long_rows_get_no_padding_rows() -> None:
    assert round_shape(5, 40, cached_tokens=600) == (6, 48)
    assert round_shape(5, 40, cached_tokens=700) == (5, 48)
    assert round_shape(1, 40, cached_tokens=1 << 20) == (1, 48), "none are added anyway"


# What comes of it.


def test_prompts_of_about_one_length_have_one_shape(runner: GenerationRunner, shapes: list[SliceShape]) -> None:
    for length in range(34, 50):
        ask(runner, request(length))
    assert set(shapes) == {(1, 48)}, "the last token of each is processed by itself"


def test_as_many_rows_as_a_shape_has_are_processed(runner: GenerationRunner, shapes: list[SliceShape]) -> None:
    ask(runner, *(request(length) for length in (40, 41, 42, 43, 44)))
    assert shapes == [(6, 48)]


@pytest.mark.parametrize("count", range(1, len(LENGTHS) + 1))
def test_answers_are_the_same_with_rounded_shapes(count: int, runner: GenerationRunner) -> None:
    requests = [request(length, temperature=length % 2) for length in LENGTHS[:count]]
    padded = ask(runner, *requests, seeds=range(count))
    runner.discard_batch()
    with pytest.MonkeyPatch.context() as plain:
        plain.setattr(batch, "compiles_each_shape", lambda: False)
        assert [answer.token_ids for answer in ask(runner, *requests, seeds=range(count))] == [
            answer.token_ids for answer in padded
        ]


def test_the_cached_part_of_a_prompt_is_the_computed_part(runner: GenerationRunner) -> None:
    requests = [request(length, cache="on") for length in LENGTHS]
    first = ask(runner, *requests)
    before = runner.cache_stats()
    again = ask(runner, *requests)
    after = runner.cache_stats()
    assert before and after and after.saved_tokens - before.saved_tokens == sum(length - 1 for length in LENGTHS)
    assert [answer.token_ids for answer in again] == [answer.token_ids for answer in first]


def test_prompts_go_on_from_what_is_cached_of_each(runner: GenerationRunner) -> None:
    known = [request(length, cache="on") for length in LENGTHS[3:]]
    ask(runner, *known)
    longer = [replace(one, prompt=prompt_of(one) + list(range(20, 20 + len(prompt_of(one)) // 2))) for one in known]
    warm = ask(runner, *longer)
    runner.clear_cache()
    assert [answer.token_ids for answer in ask(runner, *longer)] == [answer.token_ids for answer in warm]


def test_choices_share_a_padded_prompt(runner: GenerationRunner) -> None:
    several = choices(runner, request(41, n=3, temperature=1.0), seed=4)
    assert several[0].token_ids == ask(runner, request(41, temperature=1.0), seeds=[4])[0].token_ids
    assert len({tuple(answer.token_ids) for answer in several}) == 3


def test_padding_rows_take_no_memory_after_the_prefill(
    runner: GenerationRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    padded = prompt_bytes(runner)
    monkeypatch.setattr(batch, "compiles_each_shape", lambda: False)
    runner.discard_batch()
    assert padded == prompt_bytes(runner)


def prompt_bytes(runner: GenerationRunner) -> int:
    """Return the size of the caches of five prompts after their first chunk."""
    driver = Driver(runner)
    for length in LENGTHS[:5]:
        driver.add(length, request(length))
    driver.step()
    rows = runner.batch
    assert isinstance(rows, Batch)
    (group,) = rows.prompt_groups
    assert [len(state.tokens) for state in group.rows] == [length - 1 for length in LENGTHS[:5]]
    size = group.nbytes
    driver.finish()
    return size


def test_no_padding_stands_where_the_model_knows_no_position(folder_of: FolderOf, monkeypatch: Any) -> None:
    for runner in preparing(open_runner(folder_of("qwen3"), context_len=70), monkeypatch):
        seen = watch_chunks(runner, monkeypatch)
        ask(runner, request(67, max_tokens=2))
        assert seen == [(1, 64), (1, 2)], "80 tokens would be more than there are"


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"qwen3", "llama"}))
def test_a_model_whose_caches_are_of_other_kinds_is_given_no_padding(
    family: str, runner_of: RunnerOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for runner in preparing(runner_of(family), monkeypatch):
        seen = watch_chunks(runner, monkeypatch)
        ask(runner, request(41))
        assert sum(length for _, length in seen) == 40 and {rows for rows, _ in seen} == {1}


@pytest.mark.parametrize(("prepares", "waits_s"), [(False, policy.BATCH_WAIT_S), (True, policy.BATCH_WAIT_PER_SHAPE_S)])
def test_a_first_prompt_waits_for_others_and_longer_on_such_a_device(
    prepares: bool, waits_s: float, folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy.BATCH_WAIT_S < policy.BATCH_WAIT_PER_SHAPE_S
    monkeypatch.setattr(policy, "compiles_each_shape", lambda: prepares)
    runner = open_runner(folder_of("qwen3"))
    waits = []
    for key in range(MAX_PREFILL_BATCH):
        runner.add(key, request(5), 0)
        waits.append(runner.batch_wait_s)
    assert waits == [waits_s] * (MAX_PREFILL_BATCH - 1) + [0]
