"""The filters of sampling for a whole batch. The arithmetic is written once: `xp` is `mlx.core` or `numpy`.

Filters are thresholds on a row's logits: equal logits, which bfloat16 has in plenty, cannot depend on the batch.
"""

from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

from .topk import Array, topk

TOP_P_CANDIDATES: Final = 1024
"""In numpy, how many of the most probable tokens top_p looks at before it sorts a vocabulary that is larger."""
UNLIMITED: Final = 2**30


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
        """[F, 1]: how many of the falling values it takes to have the mass; one more than there are if all have less.

        Sums run from the top, so that they do not depend on how many values are looked at.
        """
        sums = self._xp.cumsum(self._xp.exp(values), axis=-1)
        return 1 + (sums < mass).sum(axis=-1, keepdims=True)

    def _nth(self, values: Array, n: Array) -> Array:
        """[F, 1]: the n-th of the falling values."""
        last = values.shape[-1]
        return self._xp.take_along_axis(values, self._xp.minimum(n, last) - 1, axis=-1)


def column(values: Sequence[float], xp: Any) -> Array:
    """A number for each row, float32 [R, 1]."""
    return xp.array(np.array(values, np.float32)[:, None])
