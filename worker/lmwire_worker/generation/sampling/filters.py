"""The filters top_k, top_p and min_p for a whole batch, written once for `mlx.core` and `numpy` (`xp`).

Filters are thresholds on a row's logits. So equal logits, which are common in bfloat16, are treated alike in any batch.
"""

from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

from .topk import Array, topk

TOP_P_CANDIDATES: Final = 1024
"""Number of most probable tokens that top_p examines in numpy before it sorts the whole vocabulary."""
UNLIMITED: Final = 2**30


class Filters:
    """top_k, top_p and min_p. As in mlx-lm, they use probabilities before the temperature.

    Args:
        requests: The request of each row.
        xp: `mlx.core` or `numpy`.
    """

    def __init__(self, requests: Sequence[Generation], xp: Any) -> None:
        self._xp = xp
        filtered = [row for row, request in enumerate(requests) if request.top_k or request.top_p < 1]
        self.active = bool(filtered) or any(request.min_p for request in requests)
        """True if any row has a filter."""
        self._min_p = column([np.log(request.min_p) if request.min_p else -np.inf for request in requests], xp)
        self._rows = xp.array(filtered, xp.int32)
        self._filtered = len(filtered)
        self._limits = np.array([min(requests[row].top_k, UNLIMITED) or UNLIMITED for row in filtered])[:, None]
        self._has_top_p = any(requests[row].top_p < 1 for row in filtered)
        # Where top_p is off, rounding must not drop a token.
        self._top_p = column([requests[row].top_p if requests[row].top_p < 1 else 2.0 for row in filtered], xp)

    def __call__(self, below_top: Array) -> Array:
        """Return the smallest value that each row's filters keep [R, 1].

        Args:
            below_top: Logits minus the row's maximum [R, V], float32.
        """
        if self._filtered == len(below_top):
            return self._xp.maximum(self._min_p, self._threshold(below_top))
        floors = self._xp.array(self._min_p)
        if self._filtered:
            floors[self._rows] = self._xp.maximum(floors[self._rows], self._threshold(below_top[self._rows]))
        return floors

    def _threshold(self, below_top: Array) -> Array:
        """Return the smallest value that top_k and top_p keep of each filtered row [F, 1]."""
        vocabulary = below_top.shape[-1]
        limits = np.minimum(self._limits, vocabulary)
        if not self._has_top_p:
            return self._nth(topk(below_top, int(limits.max()), self._xp), self._xp.array(limits))
        mass = self._xp.exp(below_top).sum(axis=-1, keepdims=True) * self._top_p
        if self._xp is mx:
            values = topk(below_top, int(limits.max()), mx)
            return self._nth(values, mx.minimum(mx.array(limits), self._reach(values, mass)))
        count = min(vocabulary, max(TOP_P_CANDIDATES, int(limits[limits < vocabulary].max(initial=0))))
        values = topk(below_top, count, np)
        reach = np.minimum(limits, self._reach(values, mass))
        threshold = self._nth(values, np.minimum(reach, count))
        if count < vocabulary and (beyond := np.flatnonzero(reach > count)).size:
            values = topk(below_top[beyond], vocabulary, np)
            threshold[beyond] = self._nth(values, self._reach(values, mass[beyond]))
        return threshold

    def _reach(self, values: Array, mass: Array) -> Array:
        """Return how many of the descending values are needed for the mass [F, 1]; one more than exist if all are less.

        Sums run from the top, so that they do not depend on how many values are looked at.
        """
        sums = self._xp.cumsum(self._xp.exp(values), axis=-1)
        return 1 + (sums < mass).sum(axis=-1, keepdims=True)

    def _nth(self, values: Array, n: Array) -> Array:
        """Return the n-th of the descending values [F, 1]."""
        last = values.shape[-1]
        return self._xp.take_along_axis(values, self._xp.minimum(n, last) - 1, axis=-1)


def column(values: Sequence[float], xp: Any) -> Array:
    """Return one number for each row, float32 [R, 1]."""
    return xp.array(np.array(values, np.float32)[:, None])
