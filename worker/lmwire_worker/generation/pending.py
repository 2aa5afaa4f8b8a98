"""Requests that a lane has taken in and not begun, because more of their prompts will be known soon.

From the disk, or from a prompt that is in work and is the same so far as it goes.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Final

from ..engine.interface import AdmittedRequest
from .cache_manager import CacheManager
from .prefix_cache import DiskRead
from .sequence import Sequence

MAX_DISK_WAIT_S: Final = 0.05
"""How late a cancel may be while nothing but the disk is at work."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that has not begun."""

    admitted: AdmittedRequest
    streams: list[Sequence]
    """Its choices."""
    read: Future[DiskRead | None] | None
    """What the disk has of its prompt; None for nothing."""


class PendingRequests:
    """Those that wait, by their keys.

    Args:
        kept: What is known of prompts.
        running: The streams whose prompts or answers are in work.
    """

    def __init__(self, kept: CacheManager, running: Mapping[int, Sequence]) -> None:
        self._kept = kept
        self._running = running
        self._waiting: dict[int, PendingRequest] = {}

    def hold(self, key: int, arrival: PendingRequest) -> bool:
        """Keeps a request if it has to wait; returns whether it has."""
        if waits := self._waits(arrival):
            self._waiting[key] = arrival
        return waits

    def take_ready(self) -> Iterator[tuple[int, PendingRequest]]:
        """Lets go of those that need not wait any longer."""
        for key, arrival in [*self._waiting.items()]:
            if not self._waits(arrival):
                yield key, self._waiting.pop(key)

    def wait_for_disk(self) -> None:
        """Waits a moment for the disk, as there is nothing else to do."""
        wait([arrival.read for arrival in self._waiting.values() if arrival.read], MAX_DISK_WAIT_S, FIRST_COMPLETED)

    def discard(self, key: int) -> None:
        """Lets go of a request, if it waits."""
        self._waiting.pop(key, None)

    def _waits(self, arrival: PendingRequest) -> bool:
        reading = arrival.read is not None and not arrival.read.done()
        first = arrival.streams[0]
        return reading or any(self._kept.should_wait_for(stream, first) for stream in self._running.values())
