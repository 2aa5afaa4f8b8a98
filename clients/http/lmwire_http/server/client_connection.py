"""A client's connection: uvicorn's, with the timeouts that it lacks for clients that stop sending or reading."""

import asyncio
import logging
from itertools import count
from time import monotonic
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEAD_BYTES: Final = 64 * 1024
"""Length of a request's head."""
MAX_HEADERS: Final = 100
"""Headers of a request, and of the trailers of its body. Clients send about 20."""
_MAX_PIPELINED: Final = 8
"""Pipelined requests that are read ahead. While reading is paused, a disconnect goes unnoticed."""
_HEAD_PROBLEM: Final = b"the request's head is over 64 KiB or has over %d headers; send fewer" % MAX_HEADERS
_HEAD_TOO_LONG: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
    % (len(_HEAD_PROBLEM), _HEAD_PROBLEM)
)
_TOO_MANY_CONNECTIONS: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"content-type: text/plain\r\ncontent-length: 45\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
    b"too many connections are open; ask again soon"
)
_TIMEOUT_RESPONSE_S: Final = 5.0
"""Time to send the response about a slow body before the connection is closed without one, in seconds."""
_unix_client_numbers: Final = count()
_log = logging.getLogger("lmwire_http")


class ClientConnection(HttpToolsProtocol):
    """A connection that closes when its client stops, and that reports a disconnect to each of its requests.

    Args:
        client_timeout_s: Longest pause within a request's head or while a response is read, in seconds.
        body_timeout_s: Time for a whole request body to arrive, in seconds.
        max_connections: Most connections of the server.
    """

    def __init__(
        self, *args: Any, client_timeout_s: float, body_timeout_s: float, max_connections: int, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._client_timeout_s, self._body_timeout_s, self._max_connections = (
            client_timeout_s,
            body_timeout_s,
            max_connections,
        )
        self._idle_since = 0.0
        self._body_timer: asyncio.TimerHandle | None = None
        """Runs until a request's body has arrived, whether it is read or not."""
        self._head_bytes = 0
        self._field_bytes = 0
        """Bytes of the parsed URL and headers, which may arrive in one piece with the body."""
        self._header_count = 0
        self._head_timer: asyncio.TimerHandle | None = None
        """Runs until a request's head has arrived."""
        self._read_timer: asyncio.TimerHandle | None = None
        """Runs while the client reads more slowly than the server sends."""
        self._open_cycles: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._idle_since = monotonic()
        if self.client is None:
            self.client = ("unix", next(_unix_client_numbers))  # clients of a Unix socket have no address
        self._start_head_timer()
        if len(self.connections) > self._max_connections:
            self._close_idlest()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        if self._head_timer and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse_head()

    def on_url(self, url: bytes) -> None:
        """Check the head's length."""
        super().on_url(url)
        self._check_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Check the head's length, and the number of headers."""
        self._header_count += 1
        self._check_head(len(name) + len(value))
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Respond to a request that cannot be parsed, or whose head is too long."""
        if self._is_head_too_long:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """Start to wait for a request's head."""
        super().on_message_begin()
        self._field_bytes = self._header_count = 0
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        """Start to wait for the request's body."""
        self._stop_request_timers()
        self._body_timer = self.loop.call_later(self._body_timeout_s + _TIMEOUT_RESPONSE_S, self.transport.close)
        super().on_headers_complete()
        self._open_cycles = [cycle for cycle in self._open_cycles if not cycle.response_complete]
        self._open_cycles.append(self.cycle)
        if 0 < len(self.pipeline) < _MAX_PIPELINED:
            self.flow.resume_reading()

    def on_message_complete(self) -> None:
        """Stop to wait: the whole request has arrived."""
        self._stop_request_timers()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Note when the connection became idle."""
        self._idle_since = monotonic()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in flight on the connection."""
        return not self.transport.is_closing() and all(cycle.response_complete for cycle in self._open_cycles)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`. uvicorn reports the disconnect only to the last of several pipelined requests."""
        self._stop_request_timers()
        self.resume_writing()
        for cycle in self._open_cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`. The client has not read what was sent."""
        super().pause_writing()
        self._start_read_timer()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`. The client has read what was sent."""
        super().resume_writing()
        if self._read_timer:
            self._read_timer.cancel()
            self._read_timer = None

    @property
    def _is_head_too_long(self) -> bool:
        return self._field_bytes > MAX_HEAD_BYTES or self._header_count > MAX_HEADERS

    def _check_head(self, added_bytes: int) -> None:
        """Stop the parser if the head is too long. It then calls `send_400_response`."""
        self._field_bytes += added_bytes
        if self._is_head_too_long:
            raise ValueError("the head is too long")

    def _refuse_head(self) -> None:
        if self.is_idle:  # otherwise the client still reads the answer to an earlier request
            self.transport.write(_HEAD_TOO_LONG)
        self.transport.close()

    def _start_head_timer(self) -> None:
        self._stop_request_timers()
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(self._client_timeout_s, self.transport.close)

    def _stop_request_timers(self) -> None:
        for timer in (self._head_timer, self._body_timer):
            if timer:
                timer.cancel()
        self._head_timer = self._body_timer = None

    def _close_idlest(self) -> None:
        """Close the connection that is idle for longest, or this one if all others are in use."""
        others = [other for other in self.connections if isinstance(other, ClientConnection) and other is not self]
        idlest = min((other for other in others if other.is_idle), key=lambda other: other._idle_since, default=self)
        if idlest is self:
            _log.warning("%d connections are open, and all are in use: another one is refused", self._max_connections)
            self.transport.write(_TOO_MANY_CONNECTIONS)
        idlest.transport.close()

    def _start_read_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(self._client_timeout_s, self._check_read_progress, unread)

    def _check_read_progress(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._start_read_timer()
            return
        _log.warning(
            "a client has read nothing of its answer for %g s: its connection is closed", self._client_timeout_s
        )
        self.transport.abort()  # close() would wait until it has read the rest
