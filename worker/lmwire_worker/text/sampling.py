"""Sampling for a whole batch in one pass, whatever each row's parameters and seed. Knows no model library's model.

A sampler object for each row costs about half the speed at 32 rows, so rows are handled in three groups, by what
they need: the most probable token, a draw from all tokens, a draw from the most probable ones.

Random numbers come from a counter: seed and position give the number. There is no state to carry, and a row draws
the same alone, in a batch, or rebuilt in the middle. To the same end filters are thresholds on a row's logits and a
draw walks the tokens in their order: equal logits, which bfloat16 has in plenty, cannot depend on the batch.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

BLOCK: Final = 64
"""Positions whose random numbers are computed at once."""
CANDIDATES: Final = (128, 1024)
"""On a CPU, how many of the most probable tokens top_p looks at before it sorts the vocabulary."""
UNLIMITED: Final = 2**30

Choose = Callable[[mx.array, mx.array], mx.array]
"""Logits [R, V] and numbers in [0, 1) [R, 1] → tokens [R, 1]."""


class BatchSampler:
    """Samples for one composition of a batch; each call is a step.

    Args:
        requests: Of each row.
        seeds: Of each row.
        positions: Of each row, tokens before the next one to be sampled, prompt included.
    """

    def __init__(self, requests: Sequence[Generation], seeds: Sequence[int], positions: Sequence[int]) -> None:
        self._uniforms = _Uniforms(seeds, positions)
        greedy = [row for row, request in enumerate(requests) if request.temperature == 0]
        sampled = [row for row, request in enumerate(requests) if request.temperature > 0]
        plain = [row for row in sampled if requests[row].top_p == 1 and requests[row].top_k == 0]
        filtered = [row for row in sampled if row not in plain]
        self._all_greedy = not sampled
        self._groups: list[tuple[np.ndarray, mx.array | None, Choose]] = []
        for rows, kind in ((greedy, _Greedy), (plain, _Plain), (filtered, _Filtered)):
            if rows:
                taken = None if len(rows) == len(requests) else mx.array(rows)
                self._groups.append((np.array(rows), taken, kind([requests[row] for row in rows])))
        order = greedy + plain + filtered
        self._restore = None if order == sorted(order) else mx.array(np.argsort(order))

    def __call__(self, logits: mx.array) -> mx.array:
        """Logits [B, V] → tokens [B], uint32, not evaluated."""
        if self._all_greedy:
            return mx.argmax(logits, axis=-1)
        uniforms = self._uniforms.next()
        parts = []
        for rows, taken, choose in self._groups:
            part = logits if taken is None else logits[taken]
            parts.append(choose(part, mx.array(uniforms[rows, None])).astype(mx.uint32))
        tokens = (parts[0] if len(parts) == 1 else mx.concatenate(parts)).squeeze(-1)
        return tokens if self._restore is None else tokens[self._restore]


class _Greedy:
    def __init__(self, requests: Sequence[Generation]) -> None:
        pass

    def __call__(self, logits: mx.array, uniforms: mx.array) -> mx.array:
        return mx.argmax(logits, axis=-1, keepdims=True)


class _Plain:
    """Temperature and min_p, which need no order among the tokens."""

    def __init__(self, requests: Sequence[Generation]) -> None:
        self._sharpness = _column([_inverse(request.temperature) * UNIT for request in requests])
        self._min_p = _column([_log(request.min_p) for request in requests])
        self._has_min_p = any(request.min_p for request in requests)

    def __call__(self, logits: mx.array, uniforms: mx.array) -> mx.array:
        return _draw(self.weights(logits), uniforms)

    def weights(self, logits: mx.array) -> mx.array:
        """[R, V]: each token's probability, up to a factor a row; 0 where a filter dropped it."""
        logits = logits.astype(mx.float32)
        below_top = logits - logits.max(axis=-1, keepdims=True)
        weights = _power(below_top * self._sharpness)
        return weights * (below_top >= self._min_p) if self._has_min_p else weights


class _Filtered:
    """Temperature, min_p, and top_p or top_k, whose threshold is some number of the largest logits away.

    top_p counts untempered probabilities, as mlx-lm does.
    """

    def __init__(self, requests: Sequence[Generation]) -> None:
        self._sharpness = _column([_inverse(request.temperature) * UNIT for request in requests])
        self._min_p = _column([_log(request.min_p) for request in requests])
        self._top_p = _column([request.top_p if request.top_p < 1 else 2.0 for request in requests])
        limits = [min(request.top_k, UNLIMITED) or UNLIMITED for request in requests]
        self._top_k = mx.array(limits, mx.int32)[:, None]
        self._has_min_p = any(request.min_p for request in requests)
        self._has_top_p = any(request.top_p < 1 for request in requests)
        self._largest_k = max(limits)
        self._largest_finite_k = max((limit for limit in limits if limit < UNLIMITED), default=0)

    def __call__(self, logits: mx.array, uniforms: mx.array) -> mx.array:
        return _draw(self.weights(logits), uniforms)

    def weights(self, logits: mx.array) -> mx.array:
        """[R, V]: each token's probability, up to a factor a row; 0 where a filter dropped it."""
        logits = logits.astype(mx.float32)
        below_top = logits - logits.max(axis=-1, keepdims=True)
        threshold = self._threshold(below_top)
        if self._has_min_p:
            threshold = mx.maximum(threshold, self._min_p)
        return _power(below_top * self._sharpness) * (below_top >= threshold)

    def _threshold(self, below_top: mx.array) -> mx.array:
        """[R, 1]: the smallest logit, below the row's top, that top_p and top_k keep."""
        vocabulary = below_top.shape[-1]
        mass = _power(below_top * UNIT).sum(axis=-1, keepdims=True) * self._top_p if self._has_top_p else None
        if self._largest_k < vocabulary:
            return self._threshold_among(_largest(below_top, self._largest_k), mass)[0]
        if mx.default_device() == mx.cpu:
            # Sorting a vocabulary may take longer than the model; the nucleus is mostly among the first few.
            for candidates in CANDIDATES:
                count = max(candidates, self._largest_finite_k)
                if count < vocabulary:
                    threshold, beyond = self._threshold_among(_largest(below_top, count), mass)
                    if not beyond.any().item():
                        return threshold
        return self._threshold_among(mx.sort(below_top, axis=-1), mass)[0]

    def _threshold_among(self, largest: mx.array, mass: mx.array | None) -> tuple[mx.array, mx.array]:
        """The threshold, and whether it may lie below the given largest values, which rise (both [R, 1]).

        The mass is what top_p keeps of each row's, in untempered weights.
        """
        count = largest.shape[-1]
        kept = self._top_k
        if mass is not None:
            above = mx.cumsum(_power(largest * UNIT), axis=-1, reverse=True, inclusive=False)
            kept = mx.minimum(kept, (above < mass).sum(axis=-1, keepdims=True))
        return mx.take_along_axis(largest, mx.maximum(count - kept, 0), axis=-1), kept >= count


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


def _draw(weights: mx.array, uniforms: mx.array) -> mx.array:
    """The inverse of each row's cumulative distribution at its number; never a token of weight 0."""
    cumulative = mx.cumsum(weights, axis=-1)
    return mx.argmax(cumulative > uniforms * cumulative[:, -1:], axis=-1, keepdims=True)


def _largest(values: mx.array, count: int) -> mx.array:
    """Each row's `count` largest values, in rising order [R, count], without sorting the row.

    They lie within the `count` blocks that have the largest maxima, so only those blocks are looked into.
    """
    rows, length = values.shape
    width = min(128, 1 << max(length // (4 * count), 1).bit_length() - 1)
    if width >= 8:
        padded = mx.pad(values, [(0, 0), (0, -length % width)], constant_values=-mx.inf)
        blocks = padded.reshape(rows, -1, width)
        maxima = blocks.max(axis=-1)
        best = mx.argpartition(maxima, maxima.shape[1] - count, axis=-1)[:, -count:, None]
        values = mx.take_along_axis(blocks, best, axis=1).reshape(rows, -1)
    if count < values.shape[1]:
        values = mx.partition(values, values.shape[1] - count, axis=-1)[:, -count:]
    return mx.sort(values, axis=-1)


# On x86 MLX computes exp one value at a time, so that powers of 2 are three times as fast; elsewhere exp is.
UNIT: Final = math.log2(math.e) if mx.default_device() == mx.cpu else 1.0
"""What a difference of logits is multiplied with before `_power`."""


def _power(exponents: mx.array) -> mx.array:
    return mx.power(2.0, exponents) if mx.default_device() == mx.cpu else mx.exp(exponents)


def _column(values: list[float]) -> mx.array:
    return mx.array(values, mx.float32)[:, None]


def _inverse(temperature: float) -> float:
    return min(1 / temperature, 1e30)  # times 0, infinity would be no number


def _log(share: float) -> float:
    return math.log(share) if share else -math.inf
