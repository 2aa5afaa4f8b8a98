"""Compute the log-probabilities of a step's tokens, and the most probable alternatives."""

from functools import cached_property
from typing import Any, Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.limits import TOP_LOGPROBS

from .sampler import Array, array_module, topk_ids

DECIMALS: Final = 6
"""Precision of float32 logits."""
BLOCK_LOGITS: Final = 2**18
"""Approximate number of logits computed at once in numpy: they fit the processor's cache."""


class LogprobStep:
    """The rows of one step that ask for log-probabilities.

    On a GPU the results are part of the step. On a CPU they are left to when they are wanted, which is while the next
    step is computed.

    Args:
        logits: The rows' logits [R, V], float32.
        tokens: The sampled tokens [R].
        most: The most alternatives that a row asks for.
        xp: `mlx.core` or `numpy`; by default the faster one on the device.
    """

    def __init__(self, logits: mx.array, tokens: mx.array, most: int, xp: Any = None) -> None:
        self._most = most
        self._xp: Any = xp or array_module()
        self.pending = [tokens, *_logprobs(logits, tokens, mx)] if self._xp is mx else [tokens, logits]
        """Arrays to evaluate together with the step."""

    @cached_property
    def results(self) -> tuple[list[int], list[float], list[list[int]], list[list[float]]]:
        """The tokens, their log-probabilities, and the most probable ids with theirs, for each row."""
        mx.eval(self.pending)
        tokens, *rest = map(np.asarray, self.pending)
        own, ids, values = rest if self._xp is mx else _logprobs(rest[0], tokens, np)
        self.pending = []
        most = self._most
        return tokens.tolist(), _rounded(own[:, 0]), ids[:, :most].tolist(), _rounded(values[:, :most])


def _logprobs(logits: Array, tokens: Array, xp: Any) -> tuple[Array, Array, Array]:
    """Return the tokens' log-probabilities [R, 1], and the most probable ids with theirs [R, K].

    Args:
        logits: The logits [R, V].
        tokens: The tokens [R].
        xp: `mlx.core` or `numpy`.
    """
    ids, values = topk_ids(logits, min(TOP_LOGPROBS, logits.shape[1]), xp)
    total = mx.logsumexp(logits, axis=-1, keepdims=True) if xp is mx else _log_sum_exp(logits, values[:, :1])
    own = logits[xp.arange(len(logits)), tokens][:, None]
    return own - total, ids, values - total


def _log_sum_exp(values: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Return the log-sum-exp of each row [R, 1], a few rows at a time: within the processor's cache it is faster."""
    rows, length = values.shape
    few = max(1, BLOCK_LOGITS // length)
    parts = [np.exp(values[at : at + few] - largest[at : at + few]).sum(axis=-1) for at in range(0, rows, few)]
    return largest + np.log(np.concatenate(parts))[:, None]


def _rounded(values: np.ndarray) -> Any:
    """Return nested lists of rounded values. Adding zero turns -0.0 into 0.0."""
    return (values.astype(np.float64).round(DECIMALS) + 0.0).tolist()
