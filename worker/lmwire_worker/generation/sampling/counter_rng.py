"""Random numbers from a counter: seed and position give the number, and there is no state to carry."""

from collections.abc import Sequence
from typing import Final

import numpy as np

BLOCK_POSITIONS: Final = 64
"""Positions whose random numbers are computed at once."""


class CounterRng:
    """Numbers in [0, 1) for every row at one position after another, a block of positions at a time."""

    def __init__(self, seeds: Sequence[int], positions: Sequence[int]) -> None:
        self._seeds = np.array(seeds, np.uint64)[:, None]
        self._positions = np.array(positions, np.uint64)[:, None]
        self._used = BLOCK_POSITIONS

    def next(self) -> np.ndarray:
        """[B, 1], float32."""
        if self._used == BLOCK_POSITIONS:
            self._block = uniform_at(self._seeds, self._positions + np.arange(BLOCK_POSITIONS, dtype=np.uint64))
            self._positions += np.uint64(BLOCK_POSITIONS)
            self._used = 0
        self._used += 1
        return self._block[:, self._used - 1 : self._used]


def uniform_at(seed: np.ndarray, position: np.ndarray) -> np.ndarray:
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
