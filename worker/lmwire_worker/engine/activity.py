"""What the engine does at the moment, and when it last made progress: what `ping` reports."""

import time
from typing import Final

from lmwire_protocol.events import State

_RESTING: Final = ("idle", "paused")
"""States in which the engine computes nothing, so that no progress is due."""


class Activity:
    """The engine's state. The registry's lock guards every change between rest and work."""

    def __init__(self) -> None:
        self.state: State = "idle"
        self._progress_at = time.monotonic()

    def become(self, state: State) -> None:
        """Enters a state; to begin something counts as progress."""
        self._progress_at = time.monotonic()
        self.state = state

    def progressed(self) -> None:
        """Notes that the engine has come further."""
        self._progress_at = time.monotonic()

    def rouse(self) -> None:
        """Counts an idle engine as running, because there is something for it: it may take a while to wake."""
        if self.state == "idle":
            self.become("running")

    def step_age_ms(self) -> float | None:
        """Return the milliseconds since the last progress; None while none is due."""
        if self.state in _RESTING:
            return None
        then = self._progress_at  # read before the clock: the engine may progress in between
        return round((time.monotonic() - then) * 1000, 3)
