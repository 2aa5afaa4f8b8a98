"""The answer to one request, as it is sent: whole, or event by event."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import msgspec

from ..errors import ApiError
from .error_formats import Dialect
from .replies import EventStream, Json, Plain, Reply

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_COMMENT: Final = b": keep-alive\n\n"
_NO_HEADERS: Final[Mapping[str, str]] = {}
_EVENT_STREAM: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Response:
    """What is sent.

    Args:
        send: ASGI's.
        dialect: How errors are written.
        request_id: Goes with every answer.
        keep_alive_s: Of silence in a stream, until a comment is sent.
    """

    def __init__(self, send: Send, dialect: Dialect, request_id: str, keep_alive_s: float) -> None:
        self._send, self._dialect, self._request_id, self._keep_alive_s = send, dialect, request_id, keep_alive_s
        self._started = self._streams = False
        self._sent_at = monotonic()
        self.status: int | None = None
        """The HTTP status, or that of the error at a stream's end; None before there is one."""
        self.complete = False
        """Whether its last byte has been handed on."""

    async def send(self, reply: Reply) -> None:
        """Sends what an endpoint answers. Raises what the frames of a stream raise."""
        match reply:
            case Json():
                await self._send_whole(reply.status, "application/json", msgspec.json.encode(reply.value))
            case Plain():
                await self._send_whole(reply.status, reply.media_type, reply.content, reply.headers)
            case EventStream():
                await self._stream(reply.frames)

    async def fail(self, error: ApiError) -> None:
        """Sends an error: as the whole answer, or as the last event of a stream that has begun."""
        if self._streams:
            self.status = error.status
            await self._send_part(error.frames or self._dialect.frame(error, self._request_id), more=False)
        elif not self._started:  # else half an answer is out: what is left is to close the connection
            content = msgspec.json.encode(self._dialect.body(error, self._request_id))
            await self._send_whole(error.status, "application/json", content, _error_headers(error))

    async def _stream(self, frames: AsyncIterator[bytes]) -> None:
        """Sends events as they come, and comments while none do: what is between would take silence for an end."""
        comments = asyncio.create_task(self._send_comments())
        try:
            async with aclosing(cast(Any, frames)):
                async for frame in frames:
                    await self._send_part(frame)
        finally:
            comments.cancel()
        await self._send_part(b"", more=False)

    async def _send_comments(self) -> None:
        self._sent_at = monotonic()
        while True:
            await asyncio.sleep(max(0.0, self._sent_at + self._keep_alive_s - monotonic()))
            if monotonic() >= self._sent_at + self._keep_alive_s:
                await self._send_part(_COMMENT)

    async def _send_part(self, content: bytes, *, more: bool = True) -> None:
        if not self._started:
            self._streams = True
            await self._start(200, "text/event-stream; charset=utf-8", _EVENT_STREAM)
        self._sent_at = monotonic()
        self.complete = not more
        await self._send({"type": "http.response.body", "body": content, "more_body": more})

    async def _send_whole(
        self, status: int, media_type: str, content: bytes, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        await self._start(status, media_type, {"content-length": str(len(content)), **headers})
        self.complete = True
        await self._send({"type": "http.response.body", "body": content})

    async def _start(self, status: int, media_type: str, headers: Mapping[str, str]) -> None:
        self._started = True
        self.status = status
        ids = {"x-request-id": self._request_id, self._dialect.id_header: self._request_id}
        headers = {"content-type": media_type, **ids, **headers}
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


def _error_headers(error: ApiError) -> dict[str, str]:
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    match error.status:
        case 401:
            headers["www-authenticate"] = "Bearer"
        case 408:
            headers["connection"] = "close"  # what may still come of the body is no request
    return headers
