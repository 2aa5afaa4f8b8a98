"""Coalescing of tokens: they are delivered several at a time, and all other events as they arrive.

To wake a waiting caller costs more than a token does, in this process and in those that get the tokens from it. An end
is never delayed, a first token is delayed less, and the worker never waits for its reader.
"""

from collections.abc import Iterable
from math import inf
from typing import Final

from lmwire_protocol import events

from ..protocol.session import RequestEvents

_MIN_DELAY_S: Final = 0.03
"""Delay of tokens: 33 deliveries a second are more than a person can read."""
_DELAY_PER_REQUEST_S: Final = 0.00625
"""Delay for each request that gets tokens, where that adds up to more: each has a caller to wake."""
_MAX_DELAY_S: Final = 0.05
"""Longest delay, for any number of requests."""
_STARTING_DELAY_PER_REQUEST_S: Final = 0.00125
"""Delay for each request with tokens while another waits for its first token, which looks like any other token."""
_STARTING_MAX_DELAY_S: Final = 0.02
"""Longest delay while a request waits for its first token."""
_TOKEN: Final = b'{"event":"token",'
"""Start of a token event as lmwire's worker writes it. Tokens written differently are not delayed."""


class TokenCoalescer:
    """Holds bytes back until their delivery is due. Its owner makes one call at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._delay_until = -inf
        self._not_started: set[str] = set()

    @property
    def due_at(self) -> float:
        """Return the time at which the buffered bytes are due, or `inf` without any."""
        return self._delay_until if self._buffer else inf

    def add_request(self, id: str) -> None:
        """Take note of a new request, whose first token may come next."""
        self._not_started.add(id)
        self.stop_delay()

    def feed(self, data: bytes, now: float) -> bytes:
        """Take bytes that were read, and return those to deliver now: all that are buffered, or none.

        Args:
            data: The bytes, cut anywhere.
            now: The time of the read, in seconds.
        """
        self._buffer += data
        if now < self._delay_until and _is_tokens(data):
            return b""
        ready, self._buffer = self._buffer, b""
        return ready

    def delivered(self, requests: Iterable[RequestEvents], now: float) -> None:
        """Set the delay of the tokens that follow a delivery.

        Args:
            requests: The events that were delivered.
            now: The time of the delivery, in seconds.
        """
        streams = 0
        for id, events_of_request in requests:
            last = events_of_request[-1]
            streams += isinstance(last, events.Token)
            if not isinstance(last, events.Progress):
                self._not_started.discard(id)
        if self._not_started:
            delay_s = min(streams * _STARTING_DELAY_PER_REQUEST_S, _STARTING_MAX_DELAY_S)
        else:
            delay_s = min(max(_MIN_DELAY_S, streams * _DELAY_PER_REQUEST_S), _MAX_DELAY_S)
        self._delay_until = now + delay_s

    def stop_delay(self) -> None:
        """Make the buffered bytes, and those that come next, due at once."""
        self._delay_until = -inf


def _is_tokens(data: bytes) -> bool:
    """Return whether the data is only whole lines of token events, or empty."""
    return data[-1:] in (b"", b"\n") and data.count(_TOKEN) == data.count(b"\n")
