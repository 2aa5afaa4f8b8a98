"""Encoding of a streamed response's events, in their order."""

from collections.abc import Sequence
from typing import Final

from ...http.sse import NamedEventEncoder
from .response_schema import Response
from .stream_events import AnyEvent, Event, ResponseCreated, ResponseInProgress

_encode: Final = NamedEventEncoder(AnyEvent).encode


class EventEncoder:
    """Encoder of the events of one response. It numbers them, and begins with those that every stream begins with.

    Args:
        response: The response in progress.
    """

    def __init__(self, response: Response) -> None:
        self._response = response
        self._next_number = 0

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return the encoded events. The first ones follow those that begin the stream."""
        first = () if self._next_number else (ResponseCreated(response=self._response), self._in_progress())
        return b"".join(map(self._encode_next, (*first, *events)))

    def encode_waiting(self) -> bytes:
        """Return an event without news: the response is still in progress."""
        return self.encode([]) or self.encode([self._in_progress()])

    def _in_progress(self) -> Event:
        return ResponseInProgress(response=self._response)

    def _encode_next(self, event: Event) -> bytes:
        event.sequence_number = self._next_number
        self._next_number += 1
        return _encode(event)
