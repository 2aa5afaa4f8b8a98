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
def test_one_row_of_other_logits_is_no_rounding(row: int, logits: mx.array) -> None:
    moved = logits[:]
    moved[row] += noise(2 * MAX_ROUNDING)[row]
    assert not differ_by_rounding(moved, logits)


def test_log_probabilities_compare_with_logits(logits: mx.array) -> None:
    assert differ_by_rounding(logits - mx.logsumexp(logits, axis=-1, keepdims=True), logits, most=0.001)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_no_rounding(value: float, logits: mx.array) -> None:
    moved = logits[:]
    moved[1, 5] = value
    assert not differ_by_rounding(moved, logits)


def test_half_precision_is_compared_in_single_precision(logits: mx.array) -> None:
    assert differ_by_rounding(logits.astype(mx.bfloat16), logits, most=0.003)
    assert not differ_by_rounding(logits.astype(mx.bfloat16), logits, most=0.0005)
