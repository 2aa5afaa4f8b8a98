"""Sampling for a whole batch in one pass, whatever each row's parameters and seed. Knows no model library's model.

A sampler object for each row costs about half the speed at 32 rows. On a GPU the pass runs where the logits are. On
a CPU it runs in numpy, whose sort and exp are many times as fast as MLX's; nothing is lost by waiting for the logits,
since MLX evaluates there while its caller waits in any case. The arithmetic is written once: `xp` is `mlx.core` or
`numpy`.

Random numbers come from a counter: seed and position give the number. There is no state to carry, and a row draws
the same alone, in a batch, or rebuilt in the middle. To the same end filters are thresholds on a row's logits and a
draw walks the tokens in their order: equal logits, which bfloat16 has in plenty, cannot depend on the batch.
"""

from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

BLOCK: Final = 64
"""Positions whose random numbers are computed at once."""
CANDIDATES: Final = 1024
"""In numpy, how many of the most probable tokens top_p looks at before it sorts a vocabulary that is larger."""
UNLIMITED: Final = 2**30

Array = Any
"""An array of `xp`."""


class BatchSampler:
    """Samples for one composition of a batch; each call is a step.

    Args:
        requests: Of each row.
        seeds: Of each row.
        positions: Of each row, tokens before the next one to be sampled, prompt included.
        xp: The arithmetic; by default what suits the device.
    """

    def __init__(
        self, requests: Sequence[Generation], seeds: Sequence[int], positions: Sequence[int], xp: Any = None
    ) -> None:
        self._xp: Any = xp or (np if mx.default_device() == mx.cpu else mx)
        drawn = [row for row, request in enumerate(requests) if request.temperature > 0]
        self._rows = self._xp.array(drawn, self._xp.int32)
        self._all_drawn = len(drawn) == len(requests)
        self._uniforms = _Uniforms([seeds[row] for row in drawn], [positions[row] for row in drawn])
        self._weights = Weights([requests[row] for row in drawn], self._xp) if drawn else None

    def __call__(self, logits: mx.array) -> mx.array:
        """Logits [B, V] → tokens [B], uint32."""
        if self._weights is None:
            return mx.argmax(logits, axis=-1)
        logits = logits.astype(mx.float32)
        if self._xp is mx:
            return self._sample(logits, self._weights)
        mx.eval(logits)  # other threads run meanwhile, as they could not during numpy's own wait
        return mx.array(self._sample(np.asarray(logits), self._weights).astype(np.uint32))

    def _sample(self, logits: Array, weights: "Weights") -> Array:
        uniforms = self._xp.array(self._uniforms.next()[:, None])
        if self._all_drawn:
            return _draw(weights(logits), uniforms, self._xp)
        tokens = self._xp.argmax(logits, axis=-1)
        tokens[self._rows] = _draw(weights(logits[self._rows]), uniforms, self._xp).astype(tokens.dtype)
        return tokens


class Weights:
    """Logits to the tokens' weights, under each row's temperature, top_k, top_p and min_p.

    top_p and min_p look at untempered probabilities, as mlx-lm's do.
    """

    def __init__(self, requests: Sequence[Generation], xp: Any) -> None:
        self._xp = xp
        self._sharpness = self._column([min(1 / request.temperature, 1e30) for request in requests])  # times 0 it is 0
        filtered = [row for row, request in enumerate(requests) if request.top_k or request.top_p < 1]
        self._rows = xp.array(filtered, xp.int32)
        self._filtered = len(filtered)
        self._limits = np.array([min(requests[row].top_k, UNLIMITED) or UNLIMITED for row in filtered])[:, None]
        self._has_top_p = any(requests[row].top_p < 1 for row in filtered)
        # Where top_p is off, rounding must not drop a token.
        self._top_p = self._column([requests[row].top_p if requests[row].top_p < 1 else 2.0 for row in filtered])
        self._has_min_p = any(request.min_p for request in requests)
        self._min_p = self._column([np.log(request.min_p) if request.min_p else -np.inf for request in requests])

    def __call__(self, logits: Array) -> Array:
        """[R, V], float32 → each token's probability, up to a factor a row; 0 where a filter dropped it."""
        below_top = logits - logits.max(axis=-1, keepdims=True)
        weights = self._xp.exp(below_top * self._sharpness)
        if self._has_min_p:
            weights = weights * (below_top >= self._min_p)
        if self._filtered == len(weights):
            weights = weights * (below_top >= self._threshold(below_top))
        elif self._filtered:
            below_top = below_top[self._rows]
            weights[self._rows] = weights[self._rows] * (below_top >= self._threshold(below_top))
        return weights

    def _threshold(self, below_top: Array) -> Array:
        """[F, 1]: the smallest logit, below the row's top, that top_k and top_p keep of each filtered row."""
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

    def _column(self, values: Sequence[float]) -> Array:
        return self._xp.array(np.array(values, np.float32)[:, None])


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


def _draw(weights: Array, uniforms: Array, xp: Any) -> Array:
    """The inverse of each row's cumulative distribution at its number: tokens [R]; never one of weight 0."""
    sums = xp.cumsum(weights, axis=-1)
    return xp.argmax(sums > uniforms * sums[:, -1:], axis=-1)


class _Uniforms:
    """Numbers in [0, 1) for every row at one position after another, a block of positions at a time."""

    def __init__(self, seeds: Sequence[int], positions: Sequence[int]) -> None:
        self._seeds = np.array(seeds, np.uint64)[:, None]
        self._positions = np.array(positions, np.uint64)[:, None]
        self._used = BLOCK

    def next(self) -> np.ndarray:
        """[B], float32."""
        if self._used == BLOCK:
            self._block = uniform(self._seeds, self._positions + np.arange(BLOCK, dtype=np.uint64))
            self._positions += np.uint64(BLOCK)
            self._used = 0
        self._used += 1
        return self._block[:, self._used - 1]


def uniform(seed: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Seeds and positions (uint64, broadcast) → numbers in [0, 1), float32: SplitMix64's mixing, applied to both."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2**64 by design
        mixed = _mix(_mix(seed + golden) + (position + np.uint64(1)) * golden)
    # 24 bits are what a float32 holds; the largest value stays below 1 after rounding.
    return np.minimum(((mixed >> np.uint64(40)) + 0.5) / 2.0**24, 1 - 2.0**-22).astype(np.float32)


def _mix(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
