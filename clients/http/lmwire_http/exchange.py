"""One HTTP request from its head to its answer's end, and its client's going at any moment between.

An endpoint runs in a task of its own. Beside it another waits for the client's end of the connection to close, and then
cancels the first, in whatever state it is: queued, before the first byte, in the middle of a stream. What the endpoint
holds is given back by its own `async with` blocks.
"""

import asyncio
import logging
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing, suppress
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.formparsers import MultiPartException

from .call import Call
from .decoding import decode
from .endpoint import Endpoint
from .failures import ApiError
from .forms import read_form
from .operations.keys import check_key
from .replies import EventStream, Json, Plain, Reply
from .service import Service

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

CLIENT_GONE: Final = 499
"""The status in the log, nginx's, of a request whose client did not wait."""
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_COMMENT: Final = b": keep-alive\n\n"
_log = logging.getLogger("lmwire_http")


class Served:
    """An endpoint as an ASGI application."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        self._endpoint = endpoint
        self._service = service

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serves one request."""
        await Exchange(self._endpoint, self._service, scope, receive, send).run()


class Exchange:
    """One request, and its answer."""

    def __init__(self, endpoint: Endpoint, service: Service, scope: Message, receive: Receive, send: Send) -> None:
        self._endpoint, self._service = endpoint, service
        self._receive, self._send = receive, send
        self._headers = Headers(scope=scope)
        given = self._headers.get("x-request-id", "")
        self._call = Call(
            id=given if _REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}",
            service=service,
            headers=self._headers,
            path=scope.get("path_params", {}),
            query=QueryParams(scope["query_string"]),
        )
        self._status = CLIENT_GONE
        self._started = False
        self._sent_at = monotonic()

    async def run(self) -> None:
        """Answers, whatever happens."""
        try:
            with self._service.metrics.in_flight():
                await self._answer_unless_gone()
        finally:
            self._service.metrics.ended(self._endpoint.path, self._call, self._status)

    async def _answer_unless_gone(self) -> None:
        try:
            body = await self._read()
        except ApiError as error:
            await self._fail(error)
            return
        except ClientGone:
            return
        answer = asyncio.create_task(self._answer(body))
        gone = asyncio.create_task(self._wait_until_gone())
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not answer.done():
                self._status = CLIENT_GONE
                answer.cancel()
            with suppress(asyncio.CancelledError):
                await answer

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _read(self) -> bytes:
        """Checks the head, and reads the body.

        Raises:
            ApiError: no key, or too long a body.
            ClientGone: before its end.
        """
        if not self._endpoint.open:
            check_key(self._headers, self._service.settings.api_keys)
        limit = self._service.settings.body_bytes
        length = self._headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            raise _too_long(limit)
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > limit:
                raise _too_long(limit)
            if not message.get("more_body"):
                return bytes(body)

    async def _answer(self, body: bytes) -> None:
        try:
            reply = await self._endpoint.serve(self._call, await self._decode(body))
            await self._send_reply(reply)
        except ApiError as error:
            await self._fail(error)
        except Exception:
            _log.exception("request %s failed", self._call.id)
            await self._fail(ApiError(500, "the server has failed on this request; its log says how", code="internal"))

    async def _decode(self, body: bytes) -> Any:
        if self._endpoint.body is None:
            return None
        if not self._endpoint.form:
            return decode(body, self._endpoint.body)
        try:
            return await read_form(self._headers, body, self._endpoint.body)
        except MultiPartException as error:
            raise ApiError(400, f"the body is not multipart/form-data: {error.message}", code="invalid_form") from None

    async def _send_reply(self, reply: Reply) -> None:
        match reply:
            case Json():
                await self._send_whole(reply.status, "application/json", msgspec.json.encode(reply.value))
            case Plain():
                await self._send_whole(reply.status, reply.media_type, reply.content, reply.headers)
            case EventStream():
                await self._stream(reply.frames)

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
        interval = self._service.settings.keep_alive_s
        self._sent_at = monotonic()
        while True:
            await asyncio.sleep(max(0.0, self._sent_at + interval - monotonic()))
            if monotonic() >= self._sent_at + interval:
                await self._send_part(_COMMENT)

    async def _send_part(self, content: bytes, *, more: bool = True) -> None:
        if not self._started:
            await self._start(200, "text/event-stream", {"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._sent_at = monotonic()
        await self._send({"type": "http.response.body", "body": content, "more_body": more})

    async def _fail(self, error: ApiError) -> None:
        dialect = self._endpoint.dialect
        if self._started:
            self._status = error.status
            await self._send_part(dialect.frame(error, self._call.id), more=False)
            return
        headers = {} if error.retry_after is None else {"retry-after": str(max(1, round(error.retry_after)))}
        if error.status == 401:
            headers["www-authenticate"] = "Bearer"
        content = msgspec.json.encode(dialect.body(error, self._call.id))
        await self._send_whole(error.status, "application/json", content, headers)

    async def _send_whole(self, status: int, media_type: str, content: bytes, headers: Any = None) -> None:
        await self._start(status, media_type, {"content-length": str(len(content)), **(headers or {})})
        await self._send({"type": "http.response.body", "body": content})

    async def _start(self, status: int, media_type: str, headers: dict[str, str]) -> None:
        self._started = True
        self._status = status
        headers = {"content-type": media_type, "x-request-id": self._call.id, **headers}
        raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


class ClientGone(Exception):
    """The client has closed its end."""


def _too_long(limit: int) -> ApiError:
    return ApiError(413, f"the body is longer than the {limit:,} bytes that are read", code="body_too_long")
