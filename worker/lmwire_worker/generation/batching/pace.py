"""The number of tokens to propose for a row: more while proposals are right, and none for a while after wrong ones."""

from typing import Final

FIRST_PROPOSALS: Final = 4
MAX_PAUSE: Final = 64
"""Maximum number of steps without a proposal after wrong ones."""
WEIGHT: Final = 0.3
"""Weight of the newest proposal in what is expected of the next one."""
HOPE: Final = 1 / 64
"""Tokens that each step adds to that, so that a text gets another chance."""


class Pace:
    """The pace of one row's proposals. Text that cannot be foretold costs little with it.

    Args:
        most: Maximum number of tokens proposed in one step.
        patience: Number of wrong proposals in a row before the first pause.
    """

    def __init__(self, most: int, patience: int = 0) -> None:
        self._most = most
        self._patience = patience
        self._span = min(FIRST_PROPOSALS, most)
        self.expected = self._span / 2
        """Tokens that the next proposal is expected to give."""
        self._wrong = 0
        """Wrong proposals since the last right one."""
        self._pause = 0
        """Steps that still have no proposal."""

    def next(self) -> int:
        """Return the number of tokens to propose in the next step."""
        self.expected = min(self.expected + HOPE, self._span)
        if self._pause > 0:
            self._pause -= 1
            return 0
        return self._span

    def note(self, proposed: int, accepted: int) -> None:
        """Take in how much of a proposal was right.

        Args:
            proposed: Number of proposed tokens.
            accepted: Number of those that the model sampled, too.
        """
        self.expected += WEIGHT * (accepted - self.expected)
        if accepted:
            self._wrong = 0
        else:
            self._wrong += 1
            paused = self._wrong - self._patience
            self._pause = min(1 << paused, MAX_PAUSE) if paused > 0 else 0
        self._span = min(2 * self._span, self._most) if accepted == proposed else max(accepted, FIRST_PROPOSALS)
