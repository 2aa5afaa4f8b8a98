"""What a slice of a prompt takes, learned from those that were processed."""

from collections.abc import Sequence
from typing import Final

DECAY: Final = 0.9
"""How much a slice counts against the next one: about ten count, since a machine is not always equally fast."""
UPDATE_SWEEPS: Final = 10
MAX_OUTLIER_RATIO: Final = 4.0
"""What took longer than so many times what was expected counts as this much: the machine may have been busy."""
MIN_PART_FRACTION: Final = 0.001
"""Of each part in what a slice takes: none is ever ruled out."""


class ChunkCostModel:
    """Seconds for a slice: a fixed part, a part for each token, and one for each token that a token looks back at.

    The parts are those that fit the remembered slices best, in proportion to what was expected of each, and none is
    negative: a least-squares fit in multiplicative updates. It goes on from the parts before, so slices of one length
    change all of them alike and leave their proportion as it was learned from different ones.
    """

    def __init__(self) -> None:
        self.is_known = False
        """Whether there was a slice."""
        self._parts = [0.0, 0.0, 0.0]
        self._start_again(0.0)

    @property
    def fixed_s(self) -> float:
        """What the shortest slice takes, but for its tokens."""
        return self._parts[0]

    def __call__(self, tokens: int, context: float) -> float:
        """Seconds for a slice of so many tokens, of all prompts together, that look back at so many on average."""
        return _dot(self._parts, (1.0, tokens, tokens * context))

    def record(self, tokens: int, context: float, seconds: float) -> None:
        """Takes in what a slice took."""
        if seconds < self.fixed_s:  # a machine that was busy is free again
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
        """Forgets all slices and keeps what they told, at so much of the time."""
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
        """Brings the parts closer to those that fit best."""
        together = zip(self._parts, self._targets, self._products, strict=True)
        self._parts = [part * target / _dot(row, self._parts) for part, target, row in together]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
