"""One client's connection: uvicorn's, which by itself waits for ever for a client that says and reads nothing."""

import asyncio
import logging
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_HEAD_BYTES: Final = 64 * 1024
_WAITING: Final = 8
"""Pipelined requests that are read ahead. While reading stops, the client's going is not seen."""
_HEAD_TOO_LONG: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain\r\ncontent-length: 33\r\nconnection: close\r\n\r\nthe request's head is over 64 KiB"
)
_log = logging.getLogger("lmwire_http")


class Connection(HttpToolsProtocol):
    """Closes itself when the client stops in the middle, and tells every request of its end.

    Args:
        patience_s: For a client that stops in the middle of a request's head, or of reading what it asked for.
    """

    def __init__(self, *args: Any, patience_s: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._patience_s = patience_s
        self._head_bytes = 0
        self._head: asyncio.TimerHandle | None = None
        """While a request's head is awaited."""
        self._unread: asyncio.TimerHandle | None = None
        """While the client reads less than it is sent."""
        self._unanswered: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._await_head()

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
        super().on_headers_complete()
        self._unanswered = [cycle for cycle in self._unanswered if not cycle.response_complete]
        self._unanswered.append(self.cycle)
        if 0 < len(self.pipeline) < _WAITING:
            self.flow.resume_reading()

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
        if self._head:
            self._head.cancel()
            self._head = None

    def _expect_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(self._patience_s, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._expect_reading()
            return
        _log.warning("a client has read nothing of its answer for %g s: its connection is closed", self._patience_s)
        self.transport.abort()  # close() would wait until it has read the rest
