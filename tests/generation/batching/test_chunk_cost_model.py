"""The cost model of the chunks of a prompt."""

import pytest

from lmwire_worker.generation.prefill_policy import ChunkCostModel

FIXED_S, TOKEN_S, BACK_S = 0.002, 1e-4, 1e-8


def taken(tokens: int, context: float) -> float:
    return FIXED_S + tokens * (TOKEN_S + BACK_S * context)


def learned(sizes: list[int], speed: float = 1.0) -> ChunkCostModel:
    """Return a model after a prompt in chunks of these sizes, repeatedly."""
    cost = ChunkCostModel()
    at = 0
    for size in 20 * sizes:
        cost.record(size, at + size / 2, taken(size, at + size / 2) / speed)
        at += size
    return cost


def test_different_chunks_separate_the_fixed_cost_from_the_cost_per_token() -> None:
    cost = learned([8, 32, 128])
    assert cost.fixed_s == pytest.approx(FIXED_S, rel=0.1)
    assert cost(2048, 5000) == pytest.approx(taken(2048, 5000), rel=0.1)


def test_what_was_learned_near_the_beginning_holds_far_into_a_prompt() -> None:
    assert learned([16, 64])(64, 16_000) == pytest.approx(taken(64, 16_000), rel=0.2)


def test_equal_chunks_predict_the_next_one() -> None:
    assert learned([64])(64, 1300) == pytest.approx(taken(64, 1300), rel=0.05)


def test_the_cost_of_the_first_chunk_may_come_from_any_part() -> None:
    cost = ChunkCostModel()
    cost.record(32, 16, 0.1)
    assert cost(32, 16) == pytest.approx(0.1, rel=0.01)
    assert 0 < cost.fixed_s < 0.1


def test_a_slower_machine_is_noticed_within_some_chunks() -> None:
    cost = learned([8, 32, 128])
    for size in 8 * [8, 32, 128]:
        cost.record(size, 3000, 3 * taken(size, 3000))
    assert cost(32, 3000) == pytest.approx(3 * taken(32, 3000), rel=0.2)


def test_a_chunk_cheaper_than_the_fixed_cost_shows_that_the_machine_is_free_again() -> None:
    cost = learned([8, 32, 128], speed=0.1)
    cost.record(8, 3000, taken(8, 3000))
    assert cost(8, 3000) == pytest.approx(taken(8, 3000), rel=0.01)
    assert cost(32, 3000) == pytest.approx(taken(32, 3000), rel=0.2)


def test_one_late_chunk_changes_little() -> None:
    cost = learned([8, 32, 128])
    before = cost(32, 3000)
    cost.record(32, 3000, 100 * before)
    assert cost(32, 3000) < 1.6 * before


def test_a_fixed_cost_that_long_chunks_hid_is_learned_from_short_ones() -> None:
    cost = ChunkCostModel()
    for size in 20 * [512, 1024]:
        cost.record(size, 100_000, size * 1e-3)
    for size in 10 * [4, 8, 16]:
        cost.record(size, 100_000, 0.050 + size * 1e-3)
    assert cost.fixed_s == pytest.approx(0.050, rel=0.2)
