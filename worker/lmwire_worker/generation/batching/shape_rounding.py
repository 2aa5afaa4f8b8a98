"""Shapes that recur, for a device that prepares its kernels anew for each shape of a prompt's slice."""

from typing import Final

import mlx.core as mx

ROW_STEPS_PER_OCTAVE: Final = 2
LENGTH_STEPS_PER_OCTAVE: Final = 4
MIN_LENGTH_STEP: Final = 16
"""Tokens between two lengths, at least."""
MAX_ROUNDED_TOKENS: Final = 4096
"""Tokens of all rows together, at most: with more, those that are added take as long as to prepare for a new shape."""


def compiles_each_shape() -> bool:
    """Whether this process's device does that: on CUDA, cuDNN and cuBLAS make a plan for each, in tens of ms."""
    return mx.default_device() == mx.gpu and mx.cuda.is_available()


def round_shape(rows: int, length: int, held: int = 0) -> tuple[int, int]:
    """The shape, rows and tokens of each, that a slice of so many is to be padded to.

    Args:
        rows: Of the slice.
        length: Tokens of the longest row.
        held: Tokens that the rows' caches hold before it, at most. Rows that are added take as much memory meanwhile.
    """
    more_rows, longer = (
        _round_up(rows, ROW_STEPS_PER_OCTAVE, 1),
        _round_up(length, LENGTH_STEPS_PER_OCTAVE, MIN_LENGTH_STEP),
    )
    if more_rows * (held + longer) <= MAX_ROUNDED_TOKENS:
        return more_rows, longer
    return (rows, longer) if rows * longer <= MAX_ROUNDED_TOKENS else (rows, length)


def _round_up(count: int, in_octave: int, least: int) -> int:
    """The count, or the next on a ladder with so many rungs in an octave, `least` apart at least."""
    step = max(least, (1 << (count - 1).bit_length()) // (2 * in_octave))
    return -(-count // step) * step
