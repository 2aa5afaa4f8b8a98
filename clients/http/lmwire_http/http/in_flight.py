"""The requests in flight, which the server interrupts together when it stops."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from ..errors import ApiError


class Interruptible(Protocol):
    """A request that can be ended early."""

    def interrupt(self, error: ApiError) -> None:
        """End the request with this error."""
        ...


class InFlightRequests:
    """The requests in flight."""

    def __init__(self) -> None:
        self._requests: set[Interruptible] = set()

    @contextmanager
    def track(self, request: Interruptible) -> Generator[None]:
        """Count a request as in flight while the block runs."""
        self._requests.add(request)
        try:
            yield
        finally:
            self._requests.discard(request)

    def interrupt_all(self, error: ApiError) -> int:
        """End all requests with this error, and return their number."""
        interrupted = [*self._requests]
        for request in interrupted:
            request.interrupt(error)
        return len(interrupted)
