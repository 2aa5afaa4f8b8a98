"""The cost model of prompts that are prefilled together."""

import pytest

from lmwire_worker.generation.prefill_policy import MAX_EXTRAPOLATION, BatchCostModel

FIXED_S, TOKEN_S = 0.010, 2e-5


def learned(*chunks: int, fixed_s: float = FIXED_S, late: tuple[int, ...] = ()) -> BatchCostModel:
    """Return a model after chunks of these lengths, some of which took twenty times as long."""
    cost = BatchCostModel()
    for index, tokens in enumerate(chunks):
        cost.record(tokens, (fixed_s + tokens * TOKEN_S) * (20 if index in late else 1))
    return cost


def test_nothing_is_known_at_first() -> None:
    assert BatchCostModel().tokens_within(0.1) == 0


def test_different_chunks_show_the_fixed_cost() -> None:
    assert learned(200, 1800, 400).tokens_within(0.1) == pytest.approx((0.1 - FIXED_S) / TOKEN_S)


def test_chunks_of_one_length_show_a_speed() -> None:
    speed = 200 / (FIXED_S + 200 * TOKEN_S)
    assert learned(200, 200, 200).tokens_within(0.1) == pytest.approx(0.1 * speed)
    assert learned(200, 201, 200).tokens_within(0.1) == pytest.approx(0.1 * speed, rel=0.02)


def test_without_a_fixed_cost_time_is_proportional_to_tokens() -> None:
    cost = learned(100, 900, 300, fixed_s=0.0)
    assert cost.tokens_within(0.1) == pytest.approx(0.1 / TOKEN_S)
    assert cost.tokens_within(0.2) == pytest.approx(2 * cost.tokens_within(0.1))


@pytest.mark.parametrize("late", [(0,), (3,), (1, 4)])
def test_an_unusually_slow_chunk_counts_little(late: tuple[int, ...]) -> None:
    cost = learned(200, 1800, 400, 1200, 200, 1000, 800, late=late)
    assert cost.tokens_within(0.1) == pytest.approx((0.1 - FIXED_S) / TOKEN_S, rel=0.15)


def test_a_length_far_beyond_those_measured_is_not_predicted() -> None:
    assert learned(20, 100).tokens_within(0.1) == MAX_EXTRAPOLATION * 100


def test_if_longer_chunks_took_no_longer_the_prediction_is_constant() -> None:
    cost = BatchCostModel()
    for tokens, seconds in ((200, 0.012), (1800, 0.011), (900, 0.012)):
        cost.record(tokens, seconds)
    assert cost.tokens_within(0.1) == MAX_EXTRAPOLATION * 1800


def test_no_time_allows_no_tokens() -> None:
    assert learned(200, 1800).tokens_within(FIXED_S / 2) < 0


def test_old_measurements_are_forgotten() -> None:
    cost = learned(200, 1800)
    for tokens in 8 * (200, 1800):
        cost.record(tokens, tokens * TOKEN_S)
    assert cost.tokens_within(0.1) == pytest.approx(0.1 / TOKEN_S)
