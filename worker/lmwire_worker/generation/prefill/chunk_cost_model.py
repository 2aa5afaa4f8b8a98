"""Predict the duration of a chunk of a prompt, from earlier chunks."""

from collections.abc import Sequence
from typing import Final

DECAY: Final = 0.9
"""Weight of a chunk relative to the next one. About ten chunks count, since a machine's speed changes."""
UPDATE_SWEEPS: Final = 10
MAX_OUTLIER_RATIO: Final = 4.0
"""Maximum ratio of a measured to a predicted duration. Longer ones are clipped: the machine was probably busy."""
MIN_PART_FRACTION: Final = 0.001
"""Minimum share of each part in a chunk's duration, so that a part can grow again."""


class ChunkCostModel:
    """A linear model of a chunk's duration: a fixed part, a part for each token, and one for each attended token.

    The fit is non-negative least squares of the relative error, by multiplicative updates
    (https://en.wikipedia.org/wiki/Non-negative_matrix_factorization). It continues from the previous parts. So chunks
    of equal length scale all parts alike, and keep the proportions that chunks of different lengths have shown.
    """

    def __init__(self) -> None:
        self.is_known = False
        """True after the first chunk."""
        self._parts = [0.0, 0.0, 0.0]
        self._start_again(0.0)

    @property
    def fixed_s(self) -> float:
        """Duration of a chunk without its tokens, in seconds."""
        return self._parts[0]

    def __call__(self, tokens: int, context: float) -> float:
        """Predict the duration of a chunk, in seconds.

        Args:
            tokens: Tokens of all prompts together.
            context: Tokens that each of them attends to, on average.
        """
        return _dot(self._parts, (1.0, tokens, tokens * context))

    def record(self, tokens: int, context: float, seconds: float) -> None:
        """Record the duration of a chunk.

        Args:
            tokens: Tokens of all prompts together.
            context: Tokens that each of them attends to, on average.
            seconds: The duration.
        """
        if seconds < self.fixed_s:  # the machine was busy, and is free again
            self._start_again(seconds / self(tokens, context))
        expected = self(tokens, context) if self.is_known else seconds
        units = [1 / expected, tokens / expected, tokens * context / expected]
        if not self.is_known:
            self._parts = [1 / (3 * unit) for unit in units]
        self.is_known = True
        self._remember(units, min(seconds / expected, MAX_OUTLIER_RATIO))
        for _ in range(UPDATE_SWEEPS):
            self._sweep()
        self._parts = [max(part, MIN_PART_FRACTION / unit) for part, unit in zip(self._parts, units, strict=True)]

    def _start_again(self, speed: float) -> None:
        """Forget all chunks, and scale the parts by `speed`."""
        self._parts = [part * speed for part in self._parts]
        self._products = [[0.0] * 3 for _ in range(3)]
        self._targets = [0.0, 0.0, 0.0]

    def _remember(self, units: Sequence[float], ratio: float) -> None:
        self._products = [
            [DECAY * product + one * other for product, other in zip(row, units, strict=True)]
            for row, one in zip(self._products, units, strict=True)
        ]
        self._targets = [DECAY * target + unit * ratio for target, unit in zip(self._targets, units, strict=True)]

    def _sweep(self) -> None:
        """Move the parts closer to the best fit."""
        together = zip(self._parts, self._targets, self._products, strict=True)
        self._parts = [part * target / _dot(row, self._parts) for part, target, row in together]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
