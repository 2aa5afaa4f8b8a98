"""Durations of steps, by their rows and width: what tells whether a wider step is worth its time on this device."""

import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Final, Self

SAMPLES: Final = 5
"""Newest durations of steps of one kind that count."""
MIN_SAMPLES: Final = 3
"""Durations from which a kind is known."""
FIRST_PATIENCE: Final = 16
MAX_PATIENCE: Final = 256
"""Refusals of a kind after which it is measured anew: at first few, since a device is slow with what it has not done
before, then twice as many each time, since caches grow and other programs come and go."""
MIN_GAIN: Final = 0.5
"""Tokens for each row that must be expected of a wider step while the durations are unknown."""

Kind = tuple[int, int]
"""Rows and width of a step, both rounded up to a power of two."""


class StepSpeeds:
    """Durations of the steps of one model.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._durations: dict[Kind, deque[float]] = {}
        self._refusals: dict[Kind, int] = {}
        self._patience: dict[Kind, int] = {}

    def note(self, rows: int, width: int, seconds: float) -> None:
        """Record the duration of a step. The first one of a kind does not count: it may have compiled kernels.

        Args:
            rows: Number of its rows.
            width: Number of tokens that it computed of each.
            seconds: Its duration, without what others did meanwhile.
        """
        kind = _kind(rows, width)
        if kind in self._durations:
            self._durations[kind].append(seconds)
        else:
            self._durations[kind] = deque(maxlen=SAMPLES)

    def is_worth_it(self, rows: int, width: int, gain: float) -> bool:
        """Return whether a step is faster than as many as it replaces.

        Args:
            rows: Number of its rows.
            width: Number of tokens that it computes of each.
            gain: Tokens that it is expected to give each row beyond the first, on average.
        """
        wide, plain = (self._durations.get(kind, ()) for kind in (_kind(rows, width), _kind(rows, 1)))
        if len(wide) < MIN_SAMPLES or len(plain) < MIN_SAMPLES:
            return gain >= MIN_GAIN
        if (1 + gain) * _median(plain) >= _median(wide):
            return True
        self._refuse(_kind(rows, width))
        return False

    def _refuse(self, kind: Kind) -> None:
        self._refusals[kind] = self._refusals.get(kind, 0) + 1
        patience = self._patience.get(kind, FIRST_PATIENCE)
        if self._refusals[kind] == patience:
            self._patience[kind] = min(2 * patience, MAX_PATIENCE)
            del self._durations[kind], self._refusals[kind]


def _median(durations: Collection[float]) -> float:
    return sorted(durations)[len(durations) // 2]  # the module statistics would make each start longer


def _kind(rows: int, width: int) -> Kind:
    return 1 << (rows - 1).bit_length(), 1 << (width - 1).bit_length()


class StepWatch:
    """Measures the steps of one group of rows. It is a context: what happens outside of it does not count.

    A step is started in one call, and its tokens are known in the next one.

    Args:
        speeds: Gets the durations.
    """

    def __init__(self, speeds: StepSpeeds) -> None:
        self._speeds = speeds
        self._entered = 0.0
        self._spent = 0.0
        """Time since the tokens before were known, in seconds."""
        self._started: Kind | None = None
        """The rows and the width of the step whose tokens come next."""
        self._is_known = False
        """True from when the newest tokens are known until the next step starts. What it computes first is its own."""

    def __enter__(self) -> Self:
        self._entered = self._speeds.clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._spent += self._speeds.clock() - self._entered

    def start(self, rows: int, width: int) -> None:
        """Note that a step was started."""
        self._started = rows, width
        self._is_known = False

    def know(self) -> None:
        """Note that the tokens of the step before are known. Nothing happens if they were before."""
        if self._is_known:
            return
        self._is_known = True
        now = self._speeds.clock()
        if self._started is not None:
            self._speeds.note(*self._started, self._spent + now - self._entered)
        self._started, self._spent, self._entered = None, 0.0, now
