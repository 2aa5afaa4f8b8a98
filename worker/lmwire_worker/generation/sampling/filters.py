"""The filters top_k, top_p, min_p and XTC for a whole batch, written once for `mlx.core` and `numpy` (`xp`).

Filters are thresholds on a row's logits. So equal logits, which are common in bfloat16, are treated alike in any batch.
XTC (exclude top choices) sometimes excludes the most probable tokens. The idea:
https://github.com/oobabooga/text-generation-webui/pull/6335
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np
from msgspec.structs import replace

from lmwire_protocol.commands import Generation

from .counter_rng import CounterRng

Array = Any
"""An array of `xp`, which is `mlx.core` or `numpy`."""

TOP_P_CANDIDATES: Final = 1024
"""Number of most probable tokens that top_p examines in numpy before it sorts the whole vocabulary."""
UNLIMITED: Final = 2**30
SEED_OFFSET: Final = 2**53
"""Offset of XTC's seeds. Requests' seeds are smaller, so no draw uses the same random numbers."""


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


class Xtc:
    """Excludes all tokens above a row's threshold except the least probable of them.

    As in mlx-lm, XTC follows top_p and min_p and precedes top_k. So it applies top_k to its rows itself.

    Args:
        requests: The request of each row; rows with a probability of 0 are unchanged.
        seeds: The seed of each row.
        positions: Number of tokens of each row.
        special: Tokens that are never excluded.
        xp: `mlx.core` or `numpy`.
    """

    def __init__(
        self,
        requests: Sequence[Generation],
        seeds: Sequence[int],
        positions: Sequence[int],
        special: Collection[int],
        xp: Any,
    ) -> None:
        rows = [row for row, request in enumerate(requests) if request.xtc_probability]
        chosen = [requests[row] for row in rows]
        self.active = bool(rows)
        """True if any row uses XTC."""
        self._xp = xp
        self._all = len(rows) == len(requests)
        self._rows = xp.array(rows, xp.int32)
        self._uniforms = CounterRng([seeds[row] + SEED_OFFSET for row in rows], [positions[row] for row in rows])
        self._probability = np.array([request.xtc_probability for request in chosen])[:, None]
        self._threshold = column([_log(request.xtc_threshold) for request in chosen], xp)
        self._special = sorted(special)
        self._top_k = Filters([replace(request, top_p=1.0, min_p=0.0) for request in chosen], xp)

    def __call__(self, below_top: Array, kept: Array) -> Array:
        """Return which tokens remain [R, V].

        Args:
            below_top: Logits minus the row's maximum [R, V], float32.
            kept: The tokens that top_p and min_p keep [R, V].
        """
        if self._all:
            return self._remaining(below_top, kept)
        kept[self._rows] = self._remaining(below_top[self._rows], kept[self._rows])
        return kept

    def _remaining(self, below_top: Array, kept: Array) -> Array:
        xp = self._xp
        mass = (xp.exp(below_top) * kept).sum(axis=-1, keepdims=True)
        top_choices = kept & (below_top > xp.log(mass) + self._threshold)
        least = xp.where(top_choices, below_top, xp.inf).min(axis=-1, keepdims=True)
        happens = xp.array(self._uniforms.next() < self._probability)
        remaining = kept & (below_top <= xp.where(happens, least, xp.inf))
        special = [token for token in self._special if token < kept.shape[-1]]  # a tokenizer may have more tokens
        if special:
            remaining[:, xp.array(special)] = kept[:, xp.array(special)]
        if self._top_k.active:
            below_top = xp.where(remaining, below_top, -xp.inf)
            remaining = remaining & (below_top >= self._top_k(below_top))
        return remaining


def before_xtc(request: Generation) -> Generation:
    """Return a request with only the filters that precede XTC."""
    return replace(request, top_k=0) if request.xtc_probability else request


def _log(threshold: float) -> float:
    return float(np.log(threshold)) if threshold else -np.inf


# The largest values of each row, with little sorting.


def topk(values: Array, count: int, xp: Any) -> Array:
    """Return the `count` largest values of each row, descending [R, count].

    Args:
        values: The values [R, V].
        count: Number of values to return.
        xp: `mlx.core` or `numpy`.
    """
    if count < values.shape[1]:
        values = values[_index(values, xp), _candidates(values, count, xp)]
    return xp.sort(values, axis=-1)[:, ::-1][:, :count]


def topk_ids(values: Array, count: int, xp: Any) -> tuple[Array, Array]:
    """Return the ids and the `count` largest values of each row, descending [R, count]; equal values by id.

    Args:
        values: The values [R, V].
        count: Number of values to return.
        xp: `mlx.core` or `numpy`.
    """
    rows = _index(values, xp)
    ids = _candidates(values, count, xp)
    excess = ids.shape[1] - count
    best = xp.argpartition(values[rows, ids], excess, axis=-1)[:, excess:]
    ids = xp.sort(ids[rows, best], axis=-1)
    found = values[rows, ids]
    order = np.argsort(-found, axis=-1, kind="stable") if xp is np else xp.argsort(-found, axis=-1)
    return ids[rows, order], found[rows, order]


def _candidates(values: Array, count: int, xp: Any) -> Array:
    """Return ids [R, few] that include those of each row's `count` largest values.

    If each row is arranged in lines of equal length, these values are in the `count` columns with the largest maxima,
    or in the incomplete last line. Devices that sort to partition only have to sort the maxima.
    """
    rows, length = values.shape
    lines = math.isqrt(length // count)
    width = length // lines
    maxima = values[:, : lines * width].reshape(rows, lines, width).max(axis=1)
    columns = xp.argpartition(maxima, width - count, axis=-1)[:, width - count :]
    ids = (columns[:, None] + xp.arange(lines)[:, None] * width).reshape(rows, -1)
    if lines * width == length:
        return ids
    rest = xp.broadcast_to(xp.arange(lines * width, length), (rows, length - lines * width))
    return xp.concatenate([ids, rest], axis=-1)


def _index(values: Array, xp: Any) -> Array:
    return xp.arange(len(values))[:, None]
