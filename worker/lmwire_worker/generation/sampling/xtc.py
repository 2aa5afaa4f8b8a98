"""XTC (exclude top choices) for a whole batch: sometimes excludes the most probable tokens.

The idea: https://github.com/oobabooga/text-generation-webui/pull/6335
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from lmwire_protocol.commands import Generation

from .counter_rng import CounterRng
from .filters import Filters, column
from .topk import Array

SEED_OFFSET: Final = 2**53
"""Offset of XTC's seeds. Requests' seeds are smaller, so no draw uses the same random numbers."""


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
