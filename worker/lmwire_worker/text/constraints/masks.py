"""Bit masks for the constrained rows of a batch, made while the forward pass runs."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np

from .constraint import Constraint


class Masks:
    """Masks for one composition of a batch; each call is a step.

    Args:
        constraints: Of each row. Those of one model only.
    """

    def __init__(self, constraints: Sequence[Constraint | None]) -> None:
        self._rows = len(constraints)
        self._constrained = [(row, constraint) for row, constraint in enumerate(constraints) if constraint is not None]

    @property
    def idle(self) -> bool:
        """No row is constrained: calls would change nothing."""
        return not self._constrained

    def __call__(self, logits: mx.array, newest: Sequence[int]) -> mx.array:
        """Logits [B, V] → the same, but -inf where a row's constraint forbids the token.

        Never raises and never forbids a row everything: a constraint that fails says so in its `error`, and its row is
        free from then on.

        Args:
            logits: May be under evaluation: the masks are made meanwhile.
            newest: Each row's newest token; at a constraint's first call the prompt's last one.
        """
        _consume([(c.matcher, newest[row]) for row, c in self._constrained if c.push(newest[row])])
        bound = [(row, constraint) for row, constraint in self._constrained if constraint.binds]
        if not bound:
            return logits
        allowed = _unpack(_fill([constraint for _, constraint in bound]), logits.shape[-1])
        forbidden = mx.array(-mx.inf, logits.dtype)
        if len(bound) == self._rows:
            return mx.where(allowed, logits, forbidden)
        rows = mx.array([row for row, _ in bound])
        logits[rows] = mx.where(allowed, logits[rows], forbidden)
        return logits


@cache
def _executor() -> Any:
    """The threads of llguidance, which work outside of the interpreter's lock."""
    from llguidance import LLExecutor

    return LLExecutor()


def _consume(newest: list[tuple[Any, int]]) -> None:
    """Advances matchers by a token each. One that fails says so when it is asked."""
    if len(newest) == 1:
        [(matcher, token)] = newest
        matcher.consume_token(token)
    elif newest:
        _executor().consume_token_par(newest)


def _fill(constraints: Sequence[Constraint]) -> np.ndarray:
    """[R, words], int32: a bit for each token, set where it is allowed."""
    bits = np.zeros((len(constraints), constraints[0].words), np.int32)
    width = bits.shape[1] * bits.itemsize
    matchers = [(constraint.matcher, row) for row, constraint in enumerate(constraints) if constraint.matcher]
    if len(matchers) == 1:
        [(matcher, row)] = matchers
        matcher.unsafe_compute_mask_ptr(bits[row].ctypes.data, width)
    elif matchers:
        _executor().unsafe_compute_mask_ptr(matchers, bits.ctypes.data, width, len(bits))
    for row, constraint in zip(bits, constraints, strict=True):
        constraint.restrict(row)
    return bits


def _unpack(bits: np.ndarray, vocabulary: int) -> mx.array:
    """[R, words], int32 → [R, V], bool. MLX does it faster on a GPU, and numpy on a CPU."""
    if mx.default_device() == mx.cpu:
        flags: Any = np.unpackbits(bits.view(np.uint8), axis=1, count=vocabulary, bitorder="little").view(np.bool_)
        return mx.array(flags)
    missing = max(0, (vocabulary + 31) // 32 - bits.shape[1])
    words = mx.array(np.pad(bits, [(0, 0), (0, missing)]).view(np.uint32))
    flags = (words[..., None] >> mx.arange(32, dtype=mx.uint32)) & 1
    return flags.reshape(len(bits), -1)[:, :vocabulary].astype(mx.bool_)
