"""Bit masks for the constrained rows of a batch."""

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import mlx.core as mx
import numpy as np

from .constraint import Constraint

PATIENCE: Final = 1e-3
"""Seconds in which masks are filled one by one: most are sooner done than other threads are woken for them."""


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
        for row, constraint in self._constrained:
            constraint.push(newest[row])
        bound = [(row, constraint) for row, constraint in self._constrained if constraint.binds]
        if not bound:
            return logits
        bits = _fill([constraint for _, constraint in bound])
        if len(bound) == self._rows:
            return _apply(bits, logits)
        rows = mx.array([row for row, _ in bound])
        masked = mx.array(logits)  # the caller's may be the model's own, which log-probabilities are of
        masked[rows] = _apply(bits, logits[rows])
        return masked


@cache
def _executor() -> Any:
    """The threads of llguidance, which work outside of the interpreter's lock."""
    from llguidance import LLExecutor

    return LLExecutor()


def _fill(constraints: Sequence[Constraint]) -> np.ndarray:
    """[R, words], int32: a bit for each token, set where it is allowed."""
    bits = np.empty((len(constraints), constraints[0].words), np.int32)
    start, width = bits.ctypes.data, bits.shape[1] * bits.itemsize
    matchers = [(constraint.matcher, row) for row, constraint in enumerate(constraints) if constraint.matcher]
    patience = time.perf_counter() + PATIENCE
    for done, (matcher, row) in enumerate(matchers):
        if time.perf_counter() > patience:
            _executor().unsafe_compute_mask_ptr(matchers[done:], start, width, len(bits))
            break
        matcher.unsafe_compute_mask_ptr(start + row * width, width)
    for row, constraint in zip(bits, constraints, strict=True):
        constraint.restrict(row)
    return bits


def _apply(bits: np.ndarray, logits: mx.array) -> mx.array:
    """Bits [R, words], int32, and logits [R, V] → the logits, -inf where the bit is not set."""
    vocabulary = logits.shape[-1]
    missing = (vocabulary + 31) // 32 - bits.shape[1]
    if missing > 0:
        bits = np.pad(bits, [(0, 0), (0, missing)])
    octets = bits.view(np.uint8)
    if mx.default_device() == mx.cpu:  # there numpy looks up many times as fast
        ceilings = mx.array(_CEILINGS.take(octets, axis=0))
    else:
        ceilings = mx.array(_CEILINGS)[mx.array(octets)]
    # On a CPU a minimum takes a quarter of the time that a choice takes.
    return mx.minimum(logits, ceilings.reshape(len(bits), -1)[:, :vocabulary]).astype(logits.dtype)


def _ceilings() -> np.ndarray:
    """[256, 8]: of each byte of a mask, what the logits of its tokens may be at most."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.where(bits == 1, np.inf, -np.inf).astype(np.float32)


_CEILINGS: Final = _ceilings()
