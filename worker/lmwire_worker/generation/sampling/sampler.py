"""Sampling for a whole batch in one pass, whatever each row's parameters and seed. Knows no model library's model.

A sampler object for each row costs about half the speed at 32 rows. On a GPU the pass runs where the logits are. On
a CPU it runs in numpy, whose sort and exp are many times as fast as MLX's; nothing is lost by waiting for the logits,
since MLX evaluates there while its caller waits in any case. The arithmetic is written once: `xp` is `mlx.core` or
`numpy`.

A row draws the same alone, in a batch, or rebuilt in the middle: its numbers come from its seed and its position,
filters are thresholds on its logits, and a draw walks the tokens in an order that is always the same.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

from .counter_rng import CounterRng
from .filters import Filters, column
from .topk import Array
from .xtc import Xtc, before_xtc


class BatchSampler:
    """Samples for one composition of a batch; each call is a step.

    Args:
        requests: Of each row.
        seeds: Of each row.
        positions: Of each row, tokens before the next one to be sampled, prompt included.
        special: Tokens that XTC never excludes.
        xp: The arithmetic; by default what suits the device.
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
        """Logits [B, V] → tokens [B], uint32."""
        if self._weights is None:
            return mx.argmax(logits, axis=-1)
        logits = logits.astype(mx.float32)
        if self._xp is mx:
            return self._sample(logits, self._weights)
        mx.eval(logits)  # other threads run meanwhile, as they could not during numpy's own wait
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
    """Logits to the tokens' weights, under each row's temperature and filters."""

    def __init__(self, requests: Sequence[Generation], xp: Any, xtc: Xtc) -> None:
        self._xp = xp
        self._sharpness = column([min(1 / request.temperature, 1e30) for request in requests], xp)  # times 0 it is 0
        self._filters = Filters([before_xtc(request) for request in requests], xp)
        self._xtc = xtc

    def __call__(self, logits: Array) -> Array:
        """[R, V], float32 → each token's probability, up to a factor a row; 0 where a filter dropped it."""
        below_top = logits - logits.max(axis=-1, keepdims=True)
        weights = self._xp.exp(below_top * self._sharpness)
        if not (self._filters.active or self._xtc.active):
            return weights
        kept = below_top >= self._filters(below_top)
        if self._xtc.active:
            kept = self._xtc(below_top, kept)
        return weights * kept


def _draw(weights: Array, uniforms: Array, xp: Any) -> Array:
    """The inverse of each row's cumulative distribution at its number [R, 1]: tokens [R]; never one of weight 0.

    The tokens are written in lines of equal length, the last one short, and taken column by column: to sum up columns
    and then to walk one of them is several times as fast as to walk a large vocabulary.
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
    # What rounding did to the sums must lead neither before nor beyond what has a weight.
    left = xp.minimum(places - (ends - sums)[row, columns], walked[:, -1:] * (1 - 2**-20))
    line = xp.argmax(walked > xp.maximum(left, 0), axis=-1)
    return (columns[:, 0] + width * line).astype(xp.uint32)


def array_module() -> Any:
    """What computes best where the logits are."""
    return np if mx.default_device() == mx.cpu else mx
