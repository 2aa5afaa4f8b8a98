"""One client's connection: uvicorn's, which by itself waits for ever for a client that says and reads nothing."""

import asyncio
import logging
from itertools import count
from time import monotonic
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_HEAD_BYTES: Final = 64 * 1024
_WAITING: Final = 8
"""Pipelined requests that are read ahead. While reading stops, the client's going is not seen."""
_HEAD_TOO_LONG: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain\r\ncontent-length: 33\r\nconnection: close\r\n\r\nthe request's head is over 64 KiB"
)
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    b"content-type: text/plain\r\ncontent-length: 45\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
    b"too many connections are open; ask again soon"
)
_AFTER_BODY_S: Final = 5.0
"""For the answer that tells a client that its body took too long, before the connection is closed without one."""
_numbers: Final = count()
_log = logging.getLogger("lmwire_http")


class Connection(HttpToolsProtocol):
    """Closes itself when the client stops in the middle, and tells every request of its end.

    Args:
        patience_s: For a client that stops in the middle of a request's head, or of reading what it asked for.
        body_s: Total time in which a request's body must arrive.
        limit: Connections of the server, at most.
    """

    def __init__(self, *args: Any, patience_s: float, body_s: float, limit: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._patience_s, self._body_s, self._limit = patience_s, body_s, limit
        self._idle_since = 0.0
        self._body: asyncio.TimerHandle | None = None
        """While a request's body is awaited, be it read or not."""
        self._head_bytes = 0
        self._head: asyncio.TimerHandle | None = None
        """While a request's head is awaited."""
        self._unread: asyncio.TimerHandle | None = None
        """While the client reads less than it is sent."""
        self._unanswered: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._idle_since = monotonic()
        if self.client is None:
            self.client = ("unix", next(_numbers))  # a Unix socket's clients have no addresses to tell them apart
        self._await_head()
        if len(self.connections) > self._limit:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        if self._head:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self.transport.write(_HEAD_TOO_LONG)
                self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """The request's head is there."""
        self._stop_waiting()
        self._body = self.loop.call_later(self._body_s + _AFTER_BODY_S, self.transport.close)
        super().on_headers_complete()
        self._unanswered = [cycle for cycle in self._unanswered if not cycle.response_complete]
        self._unanswered.append(self.cycle)
        if 0 < len(self.pipeline) < _WAITING:
            self.flow.resume_reading()

    def on_message_complete(self) -> None:
        """The request's body is there."""
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer has been handed on."""
        self._idle_since = monotonic()
        super().on_response_complete()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return not self.transport.is_closing() and all(cycle.response_complete for cycle in self._unanswered)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`. uvicorn tells the last request alone, and not the one before that is being served."""
        self._stop_waiting()
        self.resume_writing()
        for cycle in self._unanswered:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: the client has not read what it was sent."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`: it has."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def _await_head(self) -> None:
        self._stop_waiting()
        self._head_bytes = 0
        self._head = self.loop.call_later(self._patience_s, self.transport.close)

    def _stop_waiting(self) -> None:
        for timer in (self._head, self._body):
            if timer:
                timer.cancel()
        self._head = self._body = None

    def _make_room(self) -> None:
        """Closes the connection that is idle for longest, or this one where all others are in use."""
        others = [other for other in self.connections if isinstance(other, Connection) and other is not self]
        leaving = min((other for other in others if other.idle), key=lambda other: other._idle_since, default=self)
        if leaving is self:
            _log.warning("%d connections are open, and all are in use: another one is refused", self._limit)
            self.transport.write(_TOO_MANY)
        leaving.transport.close()

    def _expect_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(self._patience_s, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._expect_reading()
            return
        _log.warning("a client has read nothing of its answer for %g s: its connection is closed", self._patience_s)
        self.transport.abort()  # close() would wait until it has read the rest
