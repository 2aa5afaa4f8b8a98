"""Sampling for a whole batch in one pass, with the parameters and the seed of each row.

A sampler object for each row would halve the speed at 32 rows. On a GPU the pass runs on the device. On a CPU it runs
in numpy, whose sort and exp are many times as fast as MLX's; waiting for the logits costs nothing there, since MLX
evaluates on the same processor. The code is written once: `xp` is `mlx.core` or `numpy`.

A row draws the same tokens alone, in a batch, or after a restart: its random numbers depend on seed and position,
filters are thresholds on its logits, and a draw walks the tokens in a fixed order.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np
from msgspec.structs import replace

from lmwire_protocol.commands import Generation

# Random numbers: seed and position determine each, without any state. The mixing function is SplitMix64's:
# https://doi.org/10.1145/2714064.2660195

BLOCK_POSITIONS: Final = 64
"""Number of positions computed at once."""


class CounterRng:
    """Random numbers in [0, 1) for each row, at consecutive positions.

    Args:
        seeds: The seed of each row.
        positions: The first position of each row.
    """

    def __init__(self, seeds: Sequence[int], positions: Sequence[int]) -> None:
        self._seeds = np.array(seeds, np.uint64)[:, None]
        self._positions = np.array(positions, np.uint64)[:, None]
        self._used = BLOCK_POSITIONS

    def next(self) -> np.ndarray:
        """Return the next numbers [B, 1], float32."""
        if self._used == BLOCK_POSITIONS:
            self._block = uniform_at(self._seeds, self._positions + np.arange(BLOCK_POSITIONS, dtype=np.uint64))
            self._positions += np.uint64(BLOCK_POSITIONS)
            self._used = 0
        self._used += 1
        return self._block[:, self._used - 1 : self._used]


def uniform_at(seed: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return numbers in [0, 1), float32.

    Args:
        seed: Seeds, uint64.
        position: Positions, uint64; broadcast with the seeds.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2**64 by design
        mixed = _mix(_mix(seed + golden) + (position + np.uint64(1)) * golden)
    # 24 bits are what a float32 holds; the largest value stays below 1 after rounding.
    return np.minimum(((mixed >> np.uint64(40)) + 0.5) / 2.0**24, 1 - 2.0**-22).astype(np.float32)


def _mix(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


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
    """Excludes all tokens above a row's threshold except the least probable of them: "exclude top choices".

    The idea: https://github.com/oobabooga/text-generation-webui/pull/6335
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


class BatchSampler:
    """Samples the next tokens. Valid until rows join or leave the batch; each call is a step.

    Args:
        requests: The request of each row.
        seeds: The seed of each row.
        positions: Number of tokens of each row, prompt included.
        special: Tokens that XTC never excludes.
        xp: `mlx.core` or `numpy`; by default the faster one on the device.
    """

    def __init__(
        self,
        requests: Sequence[Generation],
        seeds: Sequence[int],
        positions: Sequence[int],
        special: Collection[int] = (),
        *,
        xp: Any = None,
    ) -> None:
        self._xp: Any = xp or array_module()
        drawn = [row for row, request in enumerate(requests) if request.temperature > 0]
        self._rows = self._xp.array(drawn, self._xp.int32)
        self._all_drawn = len(drawn) == len(requests)
        requests = [requests[row] for row in drawn]
        seeds, positions = [seeds[row] for row in drawn], [positions[row] for row in drawn]
        self._uniforms = CounterRng(seeds, positions)
        xtc = Xtc(requests, seeds, positions, special, self._xp)
        self._weights = TokenWeights(requests, self._xp, xtc) if drawn else None

    def __call__(self, logits: mx.array) -> mx.array:
        """Return the sampled tokens [B], uint32, of logits [B, V]."""
        if self._weights is None:
            return mx.argmax(logits, axis=-1)
        logits = logits.astype(mx.float32)
        if self._xp is mx:
            return self._sample(logits, self._weights)
        mx.eval(logits)  # unlike a wait inside numpy, this lets other threads run
        with np.errstate(over="ignore"):  # a banned token's logit over a small temperature
            return mx.array(self._sample(np.asarray(logits), self._weights).astype(np.uint32))

    def _sample(self, logits: Array, weights: "TokenWeights") -> Array:
        uniforms = self._xp.array(self._uniforms.next())
        if self._all_drawn:
            return _draw(weights(logits), uniforms, self._xp)
        tokens = self._xp.argmax(logits, axis=-1)
        tokens[self._rows] = _draw(weights(logits[self._rows]), uniforms, self._xp)
        return tokens


class TokenWeights:
    """Turns logits into sampling weights, by each row's temperature and filters.

    Args:
        requests: The request of each row.
        xp: `mlx.core` or `numpy`.
        xtc: The XTC filter.
    """

    def __init__(self, requests: Sequence[Generation], xp: Any, xtc: Xtc) -> None:
        self._xp = xp
        self._sharpness = column([min(1 / request.temperature, 1e30) for request in requests], xp)  # times 0 it is 0
        self._filters = Filters([before_xtc(request) for request in requests], xp)
        self._xtc = xtc

    def __call__(self, logits: Array) -> Array:
        """Return the weight of each token, 0 if a filter dropped it, of logits [R, V], float32."""
        below_top = logits - logits.max(axis=-1, keepdims=True)
        weights = self._xp.exp(below_top * self._sharpness)
        if not (self._filters.active or self._xtc.active):
            return weights
        kept = below_top >= self._filters(below_top)
        if self._xtc.active:
            kept = self._xtc(below_top, kept)
        return weights * kept


def _draw(weights: Array, uniforms: Array, xp: Any) -> Array:
    """Draw a token of each row by inverse transform sampling, never one of weight 0, and return them [R].

    The tokens are arranged in lines of equal length, the last one shorter, and walked column by column. To sum the
    columns, and then walk one of them, is several times as fast as to walk a large vocabulary.

    Args:
        weights: The weights [R, V].
        uniforms: Random numbers in [0, 1) [R, 1].
        xp: `mlx.core` or `numpy`.
    """
    rows, length = weights.shape
    lines = math.isqrt(length)
    width = length // lines
    whole = lines * width
    sums = weights[:, :whole].reshape(rows, lines, width).sum(axis=1)
    sums[:, : length - whole] += weights[:, whole:]
    ends = xp.cumsum(sums, axis=-1)
    places = uniforms * ends[:, -1:]
    columns = xp.argmax(ends > places, axis=-1)[:, None]
    row = xp.arange(rows)[:, None]
    ids = columns + width * xp.arange(lines + 1)
    walked = xp.cumsum(weights[row, xp.minimum(ids, length - 1)] * (ids < length), axis=-1)
    # Rounding of the sums must not lead to a token of weight 0.
    left = xp.minimum(places - (ends - sums)[row, columns], walked[:, -1:] * (1 - 2**-20))
    line = xp.argmax(walked > xp.maximum(left, 0), axis=-1)
    return (columns[:, 0] + width * line).astype(xp.uint32)


def array_module() -> Any:
    """Return the faster array module on the device: `numpy` on a CPU, else `mlx.core`."""
    return np if mx.default_device() == mx.cpu else mx
