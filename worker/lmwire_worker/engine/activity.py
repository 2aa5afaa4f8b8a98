"""The engine's state and the time of its last progress, for `ping`."""

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
        """Enter a state; this counts as progress."""
        self._progress_at = time.monotonic()
        self.state = state

    def progressed(self) -> None:
        """Note that the engine has made progress."""
        self._progress_at = time.monotonic()

    def rouse(self) -> None:
        """Count an idle engine as running: it has a request, and may take a while to wake."""
        if self.state == "idle":
            self.become("running")

    def step_age_ms(self) -> float | None:
        """Return the milliseconds since the last progress; None while none is due."""
        if self.state in _RESTING:
            return None
        then = self._progress_at  # read before the clock: the engine may progress in between
        return round((time.monotonic() - then) * 1000, 3)
