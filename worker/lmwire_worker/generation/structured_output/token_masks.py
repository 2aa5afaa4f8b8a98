"""Token masks for the constrained rows of a batch."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final

import mlx.core as mx
import numpy as np

from .constraint import Constraint

SERIAL_FILL_S: Final = 1e-3
"""Time in which masks are filled one by one, in seconds. Most are done sooner than other threads could start."""
MIN_THREADED_ROWS: Final = 16
"""Rows from which a thread of its own fills their masks. Fewer take less time than a second start of an evaluation."""


class TokenMasks:
    """Token masks for one composition of a batch. Each call is a step.

    Args:
        constraints: The constraint of each row, or None. All are of one model.
    """

    def __init__(self, constraints: Sequence[Constraint | None]) -> None:
        self._rows = len(constraints)
        self._constrained = [(row, constraint) for row, constraint in enumerate(constraints) if constraint is not None]

    def __call__(self, logits: mx.array, newest: mx.array) -> mx.array:
        """Return logits [B, V] with -inf for each token that the row's constraint forbids.

        On a CPU the logits are evaluated meanwhile. On a GPU the start of their evaluation takes longer than the masks,
        so that another thread fills many of them during it.

        Never raises, and never forbids all tokens of a row. A constraint that fails sets its `error`, and allows every
        token from then on.

        Args:
            logits: The logits, [B, V].
            newest: The newest token of each row [B]: before the first step, the last token of its prompt.
        """
        if on_cpu := mx.default_device() == mx.cpu:
            mx.async_eval(logits)
        tokens: Any = newest.tolist()
        for row, constraint in self._constrained:
            constraint.push(tokens[row])
        bound = [(row, constraint) for row, constraint in self._constrained if constraint.binds]
        if not bound:
            return logits
        constraints = [constraint for _, constraint in bound]
        if on_cpu or len(bound) < MIN_THREADED_ROWS:
            bits = _fill(constraints)
        else:
            filled = _thread().submit(_fill, constraints)
            try:
                mx.async_eval(logits)
            finally:
                bits = filled.result()  # the thread has the constraints until then, also if the evaluation fails
        if len(bound) == self._rows:
            masked = _apply(bits, logits)
        else:
            rows = mx.array([row for row, _ in bound])
            masked = mx.array(logits)  # log-probabilities need the caller's logits unchanged
            masked[rows] = _apply(bits, logits[rows])
        for row, constraint in bound:
            if constraint.plain is not None:
                preferred = mx.argmax(logits[row])
                score = masked[row, preferred]
                bits = np.empty((1, constraint.mask_words), np.int32)
                constraint.plain.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
                masked[row] = _apply(bits, masked[row : row + 1])[0]
                masked[row, preferred] = score
        return masked


@cache
def _thread() -> ThreadPoolExecutor:
    """Return the thread that fills masks while the engine's starts an evaluation."""
    return ThreadPoolExecutor(1, "masks")


@cache
def _executor() -> Any:
    """Return llguidance's threads, which run without the interpreter's lock."""
    from llguidance import LLExecutor

    return LLExecutor()


def _fill(constraints: Sequence[Constraint]) -> np.ndarray:
    """Return masks [R, mask_words], int32, with a bit set for each allowed token."""
    bits = np.empty((len(constraints), constraints[0].mask_words), np.int32)
    start, width = bits.ctypes.data, bits.shape[1] * bits.itemsize
    matchers = [(constraint.matcher, row) for row, constraint in enumerate(constraints) if constraint.matcher]
    patience = time.perf_counter() + SERIAL_FILL_S
    for done, (matcher, row) in enumerate(matchers):
        if time.perf_counter() > patience:
            _executor().unsafe_compute_mask_ptr(matchers[done:], start, width, len(bits))
            break
        matcher.unsafe_compute_mask_ptr(start + row * width, width)
    for row, constraint in zip(bits, constraints, strict=True):
        constraint.complete_mask(row)
    return bits


def _apply(bits: np.ndarray, logits: mx.array) -> mx.array:
    """Return logits [R, V] with -inf where the mask's bit is not set.

    Args:
        bits: The masks, [R, mask_words], int32.
        logits: The logits, [R, V].
    """
    vocabulary = logits.shape[-1]
    missing = (vocabulary + 31) // 32 - bits.shape[1]
    if missing > 0:
        bits = np.pad(bits, [(0, 0), (0, missing)])
    octets = bits.view(np.uint8)
    if mx.default_device() == mx.cpu:  # numpy's lookup is many times faster there
        ceilings = mx.array(_CEILINGS.take(octets, axis=0))
    else:
        ceilings = mx.array(_CEILINGS)[mx.array(octets)]
    # On a CPU, minimum takes a quarter of the time of where.
    return mx.minimum(logits, ceilings.reshape(len(bits), -1)[:, :vocabulary]).astype(logits.dtype)


def _ceilings() -> np.ndarray:
    """Return [256, 8]: for each byte of a mask, the maximum logits of its 8 tokens (inf or -inf)."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.where(bits == 1, np.inf, -np.inf).astype(np.float32)


_CEILINGS: Final = _ceilings()
