"""Logits of the same tokens are equal but for rounding, whatever the vocabulary's size."""

import mlx.core as mx
import pytest

from lmwire_worker.models.logit_comparison import MAX_ROUNDING, differ_by_rounding

VOCABULARY = 151_936


@pytest.fixture
def logits() -> mx.array:
    mx.random.seed(0)
    return mx.random.normal((3, VOCABULARY), scale=7)


def noise(deviation: float) -> mx.array:
    return mx.random.normal((3, VOCABULARY), scale=7 * deviation)


def test_noise_below_the_limit_is_rounding_although_some_tokens_move_by_more(logits: mx.array) -> None:
    moved = logits + noise(MAX_ROUNDING / 2)
    assert mx.any(mx.abs(moved - logits) > 7 * MAX_ROUNDING).item()
    assert differ_by_rounding(moved, logits)


@pytest.mark.parametrize("row", range(3))
def test_other_logits_in_one_row_are_an_error(row: int, logits: mx.array) -> None:
    moved = logits[:]
    moved[row] += noise(2 * MAX_ROUNDING)[row]
    assert not differ_by_rounding(moved, logits)


def test_log_probabilities_compare_with_logits(logits: mx.array) -> None:
    assert differ_by_rounding(logits - mx.logsumexp(logits, axis=-1, keepdims=True), logits, most=0.001)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_an_error(value: float, logits: mx.array) -> None:
    moved = logits[:]
    moved[1, 5] = value
    assert not differ_by_rounding(moved, logits)


def test_logits_in_half_precision_may_have_squares_beyond_it(logits: mx.array) -> None:
    one, other = (100 * (logits + noise(0.1))).astype(mx.float16), (100 * logits).astype(mx.float16)
    assert differ_by_rounding(one, other)
