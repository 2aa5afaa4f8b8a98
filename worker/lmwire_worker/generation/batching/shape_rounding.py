"""Round the shapes of prefill chunks, for devices that compile kernels for each new shape."""

from typing import Final

import mlx.core as mx

ROW_STEPS_PER_OCTAVE: Final = 2
LENGTH_STEPS_PER_OCTAVE: Final = 4
MIN_LENGTH_STEP: Final = 16
"""Minimum difference between two lengths, in tokens."""
MAX_ROUNDED_TOKENS: Final = 4096
"""Maximum tokens of a rounded chunk, over all rows. Beyond it, padding takes longer than compiling a new shape."""


def compiles_each_shape() -> bool:
    """Return whether the device compiles kernels for each shape. On CUDA, cuDNN and cuBLAS plan for tens of ms."""
    return mx.default_device() == mx.gpu and mx.cuda.is_available()


def round_shape(rows: int, length: int, cached_tokens: int = 0) -> tuple[int, int]:
    """Return the shape (rows, tokens of each) to which a chunk is padded.

    Args:
        rows: Rows of the chunk.
        length: Tokens of the longest row.
        cached_tokens: Maximum tokens in the rows' caches. Added rows take the same memory meanwhile.
    """
    more_rows, longer = (
        _round_up(rows, ROW_STEPS_PER_OCTAVE, 1),
        _round_up(length, LENGTH_STEPS_PER_OCTAVE, MIN_LENGTH_STEP),
    )
    if more_rows * (cached_tokens + longer) <= MAX_ROUNDED_TOKENS:
        return more_rows, longer
    return (rows, longer) if rows * longer <= MAX_ROUNDED_TOKENS else (rows, length)


def _round_up(count: int, in_octave: int, least: int) -> int:
    """Return the count rounded up to a multiple of a step.

    Args:
        count: The number to round.
        in_octave: Number of steps between a power of two and the next.
        least: Minimum step.
    """
    step = max(least, (1 << (count - 1).bit_length()) // (2 * in_octave))
    return -(-count // step) * step
