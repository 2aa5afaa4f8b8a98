"""A request starts when there is memory for it, with the cache given up first, and never when there never will be."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import RequestError
from lmwire_worker.engine.interface import InsufficientMemory, ModelInfo
from lmwire_worker.generation.admission import (
    RESERVED_ANSWER_TOKENS,
    Admission,
    MemoryBudget,
    RowCost,
    short_answer_bytes,
)
from lmwire_worker.generation.caches import quantize_cache
from lmwire_worker.generation.language_model import open_shared_weights
from lmwire_worker.models.device_memory import check_fits
from random_model import write_model
from support.runners.generation_runners import EACH_FAMILY, FolderOf

KIB = 1024
TAKEN = 1000 * KIB
STEP_BYTES = 256 * KIB
"""Size of 256 tokens of 1 KiB each."""


class FakeCache:
    """A prefix cache in which `pinned` bytes are never given up."""

    def __init__(self, bytes: int = 0, pinned: int = 0) -> None:
        self.bytes = bytes + pinned
        self._pinned = pinned

    def evict(self, bytes: int) -> int:
        freed = min(bytes, self.bytes - self._pinned)
        self.bytes -= freed
        return freed


def admission(steps: float, cached: FakeCache | None = None, fixed: int = 0) -> Admission:
    """Return an admission with memory for a multiple of 256 tokens."""
    cost = RowCost(fixed, ((KIB, None),))
    budget = MemoryBudget(TAKEN + int(steps * STEP_BYTES), TAKEN, TAKEN, cost)
    return Admission(budget, cached or FakeCache())


# What rows cost.


def test_a_row_takes_whole_steps_of_tokens() -> None:
    cost = RowCost(7, ((10, None),))
    assert [cost.bytes(length) for length in (0, 1, 256, 257)] == [7, 7 + 2560, 7 + 2560, 7 + 5120]


def test_layers_with_a_window_grow_up_to_it() -> None:
    assert RowCost(0, ((10, 100), (1, None))).bytes(10_000) == 10 * 100 + 40 * 256


@pytest.mark.slow
@pytest.mark.parametrize("family", EACH_FAMILY)
def test_the_cost_of_a_row_is_what_the_models_caches_take(family: str, folder_of: FolderOf) -> None:
    network = open_shared_weights(folder_of(family), trust_remote_code=False).new_network()
    cache = make_prompt_cache(network)
    for token in range(300):
        network(mx.array([[token]]), cache=cache)
        mx.eval([layer.state for layer in cache])
    assert RowCost.measure(network).bytes(300) == sum(layer.nbytes for layer in cache)


@pytest.mark.slow
def test_a_row_in_fewer_bits_costs_less(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "wide", "llama", head_dim=64)
    network: Any = open_shared_weights(folder, trust_remote_code=False).new_network()
    plain = RowCost.measure(network).bytes(1000)
    quantize_cache(network, 8)
    assert plain / 4 < RowCost.measure(network).bytes(1000) < plain / 3


@pytest.mark.slow
def test_the_cost_is_known_before_the_weights_are_read(folder_of: FolderOf) -> None:
    before = mx.get_active_memory()
    RowCost.measure(open_shared_weights(folder_of("llama"), trust_remote_code=False).new_network())
    assert mx.get_active_memory() - before < KIB


# Which requests start.


def test_a_request_starts_when_its_prompt_and_the_beginning_of_its_answer_fit() -> None:
    admission(2).check([], 512 - RESERVED_ANSWER_TOKENS, 10_000, rows=1)
    with pytest.raises(RequestError):
        admission(2).check([], 513 - RESERVED_ANSWER_TOKENS, 10_000, rows=1)


def test_a_short_answer_is_promised_no_more_than_it_can_use() -> None:
    admission(2).check([], 502, 10, rows=1)
    with pytest.raises(RequestError):
        admission(2).check([], 502, 11, rows=1)


def test_a_request_that_never_fits_is_refused_with_the_numbers() -> None:
    with pytest.raises(RequestError) as refusal:
        admission(4).check([100], 2000, 0, rows=2)
    assert refusal.value.code == "out_of_memory"
    for number in ("2 answers", "2000 tokens", "4.0 MiB", "1.0 MiB", "2.0 MiB"):
        assert number in refusal.value.message


def test_a_request_that_will_fit_later_waits() -> None:
    with pytest.raises(InsufficientMemory):
        admission(2).check([200], 10, 10, rows=1)
    admission(2).check([], 10, 10, rows=1)


def test_short_rows_are_padded_to_a_long_one() -> None:
    admission(8).check([10, 10, 10], 10, 10, rows=1)
    with pytest.raises(InsufficientMemory):
        admission(8).check([10, 10, 10], 1000, 10, rows=1)


def test_every_choice_needs_the_memory_of_a_row() -> None:
    admission(4).check([], 256, 0, rows=4)
    with pytest.raises(RequestError):
        admission(4).check([], 256, 0, rows=5)


def test_a_recurrent_row_costs_the_same_at_any_length() -> None:
    state = STEP_BYTES // 2
    budget = MemoryBudget(TAKEN + 2 * state, TAKEN, TAKEN, RowCost(state, ()))
    Admission(budget, FakeCache()).check([100_000], 1_000_000, 1000, rows=1)
    with pytest.raises(InsufficientMemory):
        Admission(budget, FakeCache()).check([100, 100], 1, 1, rows=1)


def test_the_cache_is_given_up_first_and_no_more_of_it_than_needed() -> None:
    cache = FakeCache(3 * STEP_BYTES)
    admission(5, cached=cache).check([200], 10, 10, rows=1)
    assert cache.bytes == STEP_BYTES


def test_pinned_entries_are_not_evicted_for_a_request() -> None:
    cache = FakeCache(STEP_BYTES, pinned=2 * STEP_BYTES)
    with pytest.raises(InsufficientMemory):
        admission(5, cached=cache).check([200], 10, 10, rows=1)
    with pytest.raises(RequestError, match="MiB are pinned") as refusal:
        admission(2, cached=cache).check([], 10, 10, rows=1)
    assert refusal.value.code == "out_of_memory"


def test_a_cache_that_is_given_up_keeps_nobody_from_being_refused() -> None:
    cache = FakeCache(3 * STEP_BYTES)
    with pytest.raises(RequestError):
        admission(3, cached=cache).check([], 2000, 10, rows=1)
    assert cache.bytes == 3 * STEP_BYTES


# Which go on.


def test_rows_go_on_while_their_next_token_fits() -> None:
    assert not admission(2).is_over_budget([255, 255])
    assert admission(2).is_over_budget([256, 255])
    assert not admission(0).is_over_budget([])


def test_the_cache_is_given_up_before_a_row_ends() -> None:
    cache = FakeCache(2 * STEP_BYTES)
    assert not admission(4, cached=cache).is_over_budget([256, 10])
    assert cache.bytes == 0


# Loading.


def load(weights: int, limit: int, free: int = 1 << 40, context_len: int = 4096) -> None:
    model = ModelInfo("the model", "made up", 100, 1, 1, context_len, weights, [])
    check_fits(model, short_answer_bytes(model, RowCost(0, ((KIB, None),))), limit, free)


def test_a_model_loads_when_its_weights_and_a_short_answer_fit() -> None:
    load(10 * 2**20, 11 * 2**20)
    with pytest.raises(RequestError) as refusal:
        load(10 * 2**20, 11 * 2**20 - 1)
    assert refusal.value.code == "out_of_memory"
    for number in ("10.0 MiB", "1.0 MiB", "11.0 MiB"):
        assert number in refusal.value.message
    assert "force" in refusal.value.message


def test_memory_of_other_processes_is_not_available() -> None:
    load(10 * 2**20, 2**30, free=11 * 2**20)
    with pytest.raises(RequestError):
        load(10 * 2**20, 2**30, free=10 * 2**20)


def test_a_model_with_a_short_context_needs_memory_for_no_longer_one() -> None:
    load(10 * 2**20, 10 * 2**20 + STEP_BYTES, context_len=256)
