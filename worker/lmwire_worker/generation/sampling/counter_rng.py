"""Counter-based random numbers: seed and position determine each number, without any state.

The mixing function is SplitMix64's: https://doi.org/10.1145/2714064.2660195
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

BLOCK_POSITIONS: Final = 64
"""Number of positions computed at once."""


class CounterRng:
    """Random numbers in [0, 1) for each row, at consecutive positions.

    Args:
        seeds: The seed of each row.
        positions: The first position of each row.
    """

    def __init__(self, seeds: Sequence[int], positions: Sequence[int]) -> None:
        self._seeds = np.array(seeds, np.uint64)[:, None]
        self._positions = np.array(positions, np.uint64)[:, None]
        self._used = BLOCK_POSITIONS

    def next(self) -> np.ndarray:
        """Return the next numbers [B, 1], float32."""
        if self._used == BLOCK_POSITIONS:
            self._block = uniform_at(self._seeds, self._positions + np.arange(BLOCK_POSITIONS, dtype=np.uint64))
            self._positions += np.uint64(BLOCK_POSITIONS)
            self._used = 0
        self._used += 1
        return self._block[:, self._used - 1 : self._used]


def uniform_at(seed: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return numbers in [0, 1), float32.

    Args:
        seed: Seeds, uint64.
        position: Positions, uint64; broadcast with the seeds.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2**64 by design
        mixed = _mix(_mix(seed + golden) + (position + np.uint64(1)) * golden)
    # 24 bits are what a float32 holds; the largest value stays below 1 after rounding.
    return np.minimum(((mixed >> np.uint64(40)) + 0.5) / 2.0**24, 1 - 2.0**-22).astype(np.float32)


def _mix(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
