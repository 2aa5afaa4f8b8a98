"""Requests that a lane has taken in and not begun, because more of their prompts will be known soon.

From the disk, or from a prompt that is in work and is the same so far as it goes.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Final

from ..engine.interface import AdmittedRequest
from .cache_manager import Kept
from .prefix_cache import Read
from .sequence import Stream

LONGEST_WAIT_S: Final = 0.05
"""How late a cancel may be while nothing but the disk is at work."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that has not begun."""

    admitted: AdmittedRequest
    streams: list[Stream]
    """Its choices."""
    read: Future[Read | None] | None
    """What the disk has of its prompt; None for nothing."""


class Arrivals:
    """Those that wait, by their keys.

    Args:
        kept: What is known of prompts.
        running: The streams whose prompts or answers are in work.
    """

    def __init__(self, kept: Kept, running: Mapping[int, Stream]) -> None:
        self._kept = kept
        self._running = running
        self._waiting: dict[int, Arrival] = {}

    def hold(self, key: int, arrival: Arrival) -> bool:
        """Keeps a request if it has to wait; returns whether it has."""
        if waits := self._waits(arrival):
            self._waiting[key] = arrival
        return waits

    def ready(self) -> Iterator[tuple[int, Arrival]]:
        """Lets go of those that need not wait any longer."""
        for key, arrival in [*self._waiting.items()]:
            if not self._waits(arrival):
                yield key, self._waiting.pop(key)

    def wait(self) -> None:
        """Waits a moment for the disk, as there is nothing else to do."""
        wait([arrival.read for arrival in self._waiting.values() if arrival.read], LONGEST_WAIT_S, FIRST_COMPLETED)

    def forget(self, key: int) -> None:
        """Lets go of a request, if it waits."""
        self._waiting.pop(key, None)

    def _waits(self, arrival: Arrival) -> bool:
        reading = arrival.read is not None and not arrival.read.done()
        first = arrival.streams[0]
        return reading or any(self._kept.will_share(stream, first) for stream in self._running.values())
