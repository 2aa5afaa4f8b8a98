"""Sampling for a whole batch in one pass, with the parameters and the seed of each row.

A sampler object for each row would halve the speed at 32 rows. On a GPU the pass runs on the device. On a CPU it runs
in numpy, whose sort and exp are many times as fast as MLX's; waiting for the logits costs nothing there, since MLX
evaluates on the same processor. The code is written once: `xp` is `mlx.core` or `numpy`.

A row draws the same tokens alone, in a batch, or after a restart: its random numbers depend on seed and position,
filters are thresholds on its logits, and a draw walks the tokens in a fixed order.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

from .counter_rng import CounterRng
from .filters import Array, Filters, Xtc, before_xtc, column


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
