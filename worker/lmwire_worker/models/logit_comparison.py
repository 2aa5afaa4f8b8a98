"""Compare logits of the same tokens that were computed in two ways.

Rounding moves all logits a little, and the largest deviation of a vocabulary grows with its size. So the deviations of
all tokens count together.
"""

from typing import Final

import mlx.core as mx

MAX_ROUNDING: Final = 0.2
"""Maximum deviation by rounding. In bfloat16 it is 0.02 to 0.08 with SmolLM2-135M, and up to 0.14 with 80 layers of
wide random weights. One more token before a prompt of SmolLM2 moves its logits by 0.25 and more, and eight by 0.5."""
_LEAST: Final = 1e-30


def deviation(one: mx.array, other: mx.array) -> mx.array:
    """Return how far each row of logits lies from the other, as a share of the other's standard deviation.

    A constant added to all of a row does not count, so log-probabilities compare with logits.

    Args:
        one: Logits of shape [..., V].
        other: The same of the other way.
    """
    one, other = one.astype(mx.float32), other.astype(mx.float32)
    return _spread(one - other) / mx.maximum(_spread(other), _LEAST)


def differ_by_rounding(one: mx.array, other: mx.array, most: float = MAX_ROUNDING) -> bool:
    """Return whether all rows of logits differ from the other ones by rounding alone; see `deviation`.

    Args:
        one: Logits of shape [..., V].
        other: The same of the other way.
        most: The limit, as `deviation` returns it.
    """
    return bool(mx.all(deviation(one, other) <= most).item())  # false for NaN


def _spread(rows: mx.array) -> mx.array:
    """Return the standard deviation of each row. That of a constant is exactly 0, which `mx.std` misses far from 0."""
    return mx.std(rows - rows[..., :1], axis=-1)
