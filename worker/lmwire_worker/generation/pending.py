"""Requests that are admitted and wait for a part of their prompt: from the disk, or from another request's prefill."""

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Final

from ..engine.interface import AdmittedRequest
from .cache_manager import CacheManager
from .prefix_cache import DiskRead
from .sequence import Sequence

MAX_DISK_WAIT_S: Final = 0.05
"""Maximum delay of a cancel while only the disk is busy."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request whose prefill has not started."""

    admitted: AdmittedRequest
    sequences: list[Sequence]
    """Its choices."""
    read: Future[DiskRead | None] | None
    """The part of its prompt that is being read from disk; None if the disk has none."""


class PendingRequests:
    """The waiting requests.

    Args:
        cache_manager: Knows which prompts are cached.
        running: The sequences in the batch, by uid.
    """

    def __init__(self, cache_manager: CacheManager, running: Mapping[int, Sequence]) -> None:
        self._cache_manager = cache_manager
        self._running = running
        self._waiting: dict[int, PendingRequest] = {}

    def hold(self, key: int, request: PendingRequest) -> bool:
        """Keep a request if it has to wait, and return whether it has."""
        if waits := self._waits(request):
            self._waiting[key] = request
        return waits

    def take_ready(self) -> Iterator[tuple[int, PendingRequest]]:
        """Yield the requests that need not wait any longer, with their keys."""
        for key, request in [*self._waiting.items()]:
            if not self._waits(request):
                yield key, self._waiting.pop(key)

    def wait_for_disk(self) -> None:
        """Wait for a read, `MAX_DISK_WAIT_S` at most."""
        wait([request.read for request in self._waiting.values() if request.read], MAX_DISK_WAIT_S, FIRST_COMPLETED)

    def discard(self, key: int) -> None:
        """Remove a request, if it waits."""
        self._waiting.pop(key, None)

    def _waits(self, request: PendingRequest) -> bool:
        is_reading = request.read is not None and not request.read.done()
        first = request.sequences[0]
        return is_reading or any(
            self._cache_manager.should_wait_for(running, first) for running in self._running.values()
        )
