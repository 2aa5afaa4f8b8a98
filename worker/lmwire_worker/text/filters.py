"""The filters of sampling for a whole batch. The arithmetic is written once: `xp` is `mlx.core` or `numpy`.

Filters are thresholds on a row's logits: equal logits, which bfloat16 has in plenty, cannot depend on the batch.
"""

from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

CANDIDATES: Final = 1024
"""In numpy, how many of the most probable tokens top_p looks at before it sorts a vocabulary that is larger."""
UNLIMITED: Final = 2**30

Array = Any
"""An array of `xp`."""


class Filters:
    """top_k, top_p and min_p, which look at untempered probabilities, as mlx-lm's do.

    Args:
        requests: Of each row.
        xp: The arithmetic.
    """

    def __init__(self, requests: Sequence[Generation], xp: Any) -> None:
        self._xp = xp
        filtered = [row for row, request in enumerate(requests) if request.top_k or request.top_p < 1]
        self.active = bool(filtered) or any(request.min_p for request in requests)
        """Whether any row has a filter."""
        self._min_p = column([np.log(request.min_p) if request.min_p else -np.inf for request in requests], xp)
        self._rows = xp.array(filtered, xp.int32)
        self._filtered = len(filtered)
        self._limits = np.array([min(requests[row].top_k, UNLIMITED) or UNLIMITED for row in filtered])[:, None]
        self._has_top_p = any(requests[row].top_p < 1 for row in filtered)
        # Where top_p is off, rounding must not drop a token.
        self._top_p = column([requests[row].top_p if requests[row].top_p < 1 else 2.0 for row in filtered], xp)

    def __call__(self, below_top: Array) -> Array:
        """Logits less the row's top [R, V], float32 → the smallest one that the row's filters keep [R, 1]."""
        if self._filtered == len(below_top):
            return self._xp.maximum(self._min_p, self._threshold(below_top))
        floors = self._xp.array(self._min_p)
        if self._filtered:
            floors[self._rows] = self._xp.maximum(floors[self._rows], self._threshold(below_top[self._rows]))
        return floors

    def _threshold(self, below_top: Array) -> Array:
        """[F, 1]: the smallest value that top_k and top_p keep of each filtered row."""
        vocabulary = below_top.shape[-1]
        limits = np.minimum(self._limits, vocabulary)
        if not self._has_top_p:
            return self._nth(_largest(below_top, int(limits.max()), self._xp), self._xp.array(limits))
        mass = self._xp.exp(below_top).sum(axis=-1, keepdims=True) * self._top_p
        if self._xp is mx:
            largest = _largest(below_top, int(limits.max()), mx)
            return self._nth(largest, mx.minimum(mx.array(limits), self._reach(largest, mass)))
        count = min(vocabulary, max(CANDIDATES, int(limits[limits < vocabulary].max(initial=0))))
        largest = _largest(below_top, count, np)
        reach = np.minimum(limits, self._reach(largest, mass))
        threshold = self._nth(largest, np.minimum(reach, count))
        if count < vocabulary and (beyond := np.flatnonzero(reach > count)).size:
            largest = _largest(below_top[beyond], vocabulary, np)
            threshold[beyond] = self._nth(largest, self._reach(largest, mass[beyond]))
        return threshold

    def _reach(self, largest: Array, mass: Array) -> Array:
        """[F, 1]: how many of the largest values it takes to have the mass; one more than there are if all have less.

        Sums run from the top, so that they do not depend on how many values are looked at.
        """
        sums = self._xp.cumsum(self._xp.exp(largest), axis=-1)
        return 1 + (sums < mass).sum(axis=-1, keepdims=True)

    def _nth(self, largest: Array, n: Array) -> Array:
        """[F, 1]: the n-th largest value."""
        last = largest.shape[-1]
        return self._xp.take_along_axis(largest, self._xp.minimum(n, last) - 1, axis=-1)


def column(values: Sequence[float], xp: Any) -> Array:
    """A number for each row, float32 [R, 1]."""
    return xp.array(np.array(values, np.float32)[:, None])


def _largest(values: Array, count: int, xp: Any) -> Array:
    """Each row's `count` largest values, falling [R, count]."""
    values = _partitioned(values, count) if xp is np else _thinned(values, count)
    return xp.sort(values, axis=-1)[:, ::-1][:, :count]


def _partitioned(values: np.ndarray, count: int) -> np.ndarray:
    if count == values.shape[-1]:
        return values
    return np.partition(values, values.shape[-1] - count, axis=-1)[:, -count:]


def _thinned(values: mx.array, count: int) -> mx.array:
    """Fewer values, the `count` largest among them: they lie in the `count` blocks that have the largest maxima.

    MLX sorts to partition, on some devices, so there must be less to sort.
    """
    rows, length = values.shape
    width = min(128, 1 << max(length // (4 * count), 1).bit_length() - 1)
    if width < 8:
        return values
    padded = mx.pad(values, [(0, 0), (0, -length % width)], constant_values=-mx.inf)
    blocks = padded.reshape(rows, -1, width)
    maxima = blocks.max(axis=-1)
    best = mx.argpartition(maxima, maxima.shape[1] - count, axis=-1)[:, -count:, None]
    return mx.take_along_axis(blocks, best, axis=1).reshape(rows, -1)
