"""The requests that are being served, to be ended together when the server ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ..errors import ApiError


class Interruptible(Protocol):
    """What can be ended before its time."""

    def interrupt(self, error: ApiError) -> None:
        """Ends it with this error."""
        ...


class Running:
    """Who is being served now."""

    def __init__(self) -> None:
        self._all: set[Interruptible] = set()

    @contextmanager
    def including(self, request: Interruptible) -> Iterator[None]:
        """The request is being served."""
        self._all.add(request)
        try:
            yield
        finally:
            self._all.discard(request)

    def interrupt(self, error: ApiError) -> int:
        """Ends them all with this error, and returns how many there were."""
        interrupted = [*self._all]
        for request in interrupted:
            request.interrupt(error)
        return len(interrupted)
