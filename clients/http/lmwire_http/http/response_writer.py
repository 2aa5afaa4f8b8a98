"""Sending of one response, whole or event by event."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import msgspec

from ..errors import ApiError
from .endpoint import ByteStream, EventStream, Json, LineStream, Plain, Reply
from .error_formats import ErrorFormat
from .sse import WaitingEvent
from .unknown_fields import UnknownFields

Message: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_NO_HEADERS: Final[Mapping[str, str]] = {}
SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
_EVENT_STREAM: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class ResponseWriter:
    """Writer of one response.

    Args:
        send: The ASGI send function.
        error_format: The format of errors, and the media type of JSON.
        request_id: The request's id, which every response has in its headers.
        keep_alive_s: Time of silence in a stream before its waiting event is sent, in seconds.
        unknown_fields: The ignored fields of the request, which the response has in a header.
    """

    def __init__(
        self,
        send: Send,
        error_format: ErrorFormat,
        request_id: str,
        keep_alive_s: float,
        unknown_fields: UnknownFields,
    ) -> None:
        self._send, self._error_format, self._request_id, self._keep_alive_s = (
            send,
            error_format,
            request_id,
            keep_alive_s,
        )
        self._unknown_fields = unknown_fields
        self._encode_stream_error: Callable[[ApiError], bytes] = self._error_event
        self._started = self._is_stream = False
        self._stream_type = f"{SSE}; charset=utf-8"
        self._sent_at = monotonic()
        self.status: int | None = None
        """The HTTP status, or that of the error that ended a stream; None before the response starts."""
        self.error_code: str | None = None
        """The code of the error that ended the request."""
        self.is_complete = False
        """True once the last byte has been passed to the ASGI server."""

    async def write(self, reply: Reply) -> None:
        """Send an endpoint's reply. Exceptions of a stream's frames pass through."""
        match reply:
            case Json():
                await self._send_whole(reply.status, self._error_format.json_type, msgspec.json.encode(reply.value))
            case Plain():
                await self._send_whole(reply.status, reply.media_type, reply.content, reply.headers)
            case EventStream():
                await self._stream(reply)
            case ByteStream():
                await self._stream_bytes(reply)
            case LineStream():
                self._stream_type = NDJSON
                await self._send_frames(reply.lines)
                await self._send_part(b"", more=False)

    async def write_error(self, error: ApiError) -> None:
        """Send an error as a whole response, or as the last event of a stream that has started."""
        self.error_code = error.code
        if self._is_stream:
            self.status = error.status
            await self._send_part(self._encode_stream_error(error), more=False)
        elif not self._started:  # a response that was sent in part cannot become an error: the connection closes
            content = msgspec.json.encode(self._error_format.body(error, self._request_id))
            await self._send_whole(error.status, self._error_format.json_type, content, _error_headers(error))

    async def _stream(self, stream: EventStream) -> None:
        """Send events as they come, and waiting events during silence."""
        self._encode_stream_error = stream.encode_error or self._error_event
        waiting = asyncio.create_task(self._send_waiting_events(stream.waiting))
        try:
            await self._send_frames(stream.frames)
        finally:
            waiting.cancel()
        await self._send_part(b"", more=False)

    async def _stream_bytes(self, stream: ByteStream) -> None:
        async with aclosing(cast(Any, stream.content)):
            async for content in stream.content:
                if not self._started:
                    await self._start(200, stream.media_type, {})
                await self._send({"type": "http.response.body", "body": content, "more_body": True})
        self.is_complete = True
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _error_event(self, error: ApiError) -> bytes:
        return self._error_format.stream_event(error, self._request_id)

    async def _send_frames(self, frames: AsyncIterator[bytes]) -> None:
        async with aclosing(cast(Any, frames)):
            async for frame in frames:
                await self._send_part(frame)

    async def _send_waiting_events(self, event: WaitingEvent) -> None:
        self._sent_at = monotonic()
        while True:
            is_due = await event.until_due(max(0.0, self._sent_at + self._keep_alive_s - monotonic()))
            if is_due or monotonic() >= self._sent_at + self._keep_alive_s:
                await self._send_part(event.encode())

    async def _send_part(self, content: bytes, *, more: bool = True) -> None:
        if not self._started:
            self._is_stream = True
            await self._start(200, self._stream_type, _EVENT_STREAM)
        self._sent_at = monotonic()
        self.is_complete = not more
        await self._send({"type": "http.response.body", "body": content, "more_body": more})

    async def _send_whole(
        self, status: int, media_type: str, content: bytes, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        # The length in a 304 would be that of the content which the client already has.
        length = {} if status == 304 else {"content-length": str(len(content))}
        await self._start(status, media_type, {**length, **headers})
        self.is_complete = True
        await self._send({"type": "http.response.body", "body": content})

    async def _start(self, status: int, media_type: str, headers: Mapping[str, str]) -> None:
        self._started = True
        self.status = status
        ids = {"x-request-id": self._request_id, self._error_format.request_id_header: self._request_id}
        headers = {"content-type": media_type, **ids, **self._unknown_fields.header(), **headers}
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


def _error_headers(error: ApiError) -> dict[str, str]:
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, round(error.retry_after)))
    match error.status:
        case 401:
            headers["www-authenticate"] = "Bearer"
        case 501 | 507 if not error.retryable:
            headers["x-should-retry"] = "false"  # the official clients send failed requests again otherwise
        case 408:
            headers["connection"] = "close"  # the rest of the body must not be read as the next request
        case _:
            pass
    return headers
