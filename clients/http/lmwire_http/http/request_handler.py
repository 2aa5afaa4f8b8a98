"""One HTTP request from its head to its answer's end, and its client's going at any moment between.

An endpoint runs in a task of its own. Once the request has been read, another waits for the client's end of the
connection to close, and then cancels the first, in whatever state it is: queued, before the first byte, in the middle
of a stream. What the endpoint holds is given back by its own `async with` blocks.
"""

import asyncio
import logging
import re
import secrets
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, TypeAlias

from starlette.datastructures import Headers, QueryParams
from starlette.formparsers import MultiPartException

from ..errors import ApiError, check_template
from ..telemetry.logs import log, redacted
from .api_keys import check_key
from .app_state import Service
from .client_identity import client_of
from .context import Call
from .decoding import check_media_type, decode
from .endpoint import Endpoint
from .forms import read_form
from .response_writer import Message, Response, Send

Receive: TypeAlias = Callable[[], Awaitable[Message]]

CLIENT_GONE: Final = 499
"""The status in the log, nginx's, of a request whose client did not wait."""
UNKNOWN_PATH: Final = "unknown"
"""In the log, for any path at which there is nothing."""
_LAST_WORD_S: Final = 1.0
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_log = logging.getLogger("lmwire_http")


class Exchange:
    """One request, and its answer. The arguments after the first two are ASGI's."""

    def __init__(self, endpoint: Endpoint, service: Service, scope: Message, receive: Receive, send: Send) -> None:
        self._endpoint, self._service = endpoint, service
        self._receive = receive
        self._method = scope["method"]
        self._headers = Headers(scope=scope)
        self._peer = scope.get("client")
        given = self._headers.get("x-request-id", "")
        self._call = Call(
            id=given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(16)}",
            service=service,
            headers=self._headers,
            path=scope.get("path_params", {}),
            query=QueryParams(scope["query_string"]),
        )
        self._response = Response(send, endpoint.dialect, self._call.id, service.settings.keep_alive_s)
        self._client_gone = False
        self._interruption: ApiError | None = None

    async def run(self) -> None:
        """Answers, whatever happens."""
        self._answering = asyncio.create_task(self._answer())
        try:
            with self._service.metrics.in_flight(), self._service.running.including(self):
                await asyncio.wait((self._answering,))
                await self._settle()
        finally:
            self._answering.cancel()
            self._count()

    def interrupt(self, error: ApiError) -> None:
        """Ends it now, with this error, unless its answer has been sent."""
        self._interruption = error
        self._answering.cancel()

    async def _answer(self) -> None:
        try:
            body = await self._read()
            self._call.client = client_of(self._peer, self._headers, self._service.settings.api_keys)
            with self._until_client_goes():
                if not self._endpoint.open:
                    await self._service.startup.wait()
                decoded = await self._decode(body)
                check_template(decoded, self._service.settings)
                await self._response.send(await self._endpoint.serve(self._call, decoded))
        except _ClientGone:
            self._client_gone = True
        except ApiError as error:
            error.message = redacted(error.message, self._service.settings.api_keys)
            await self._response.fail(error)
        except Exception as error:
            self._log_failure(error)
            await self._response.fail(_failed())

    async def _settle(self) -> None:
        """Says what is left to say when the answer's task has ended."""
        if not self._answering.cancelled():
            if error := self._answering.exception():
                self._log_failure(error)
        elif not (self._client_gone or self._response.complete):
            with suppress(TimeoutError):  # who reads nothing is not told either
                async with asyncio.timeout(_LAST_WORD_S):
                    await self._response.fail(self._interruption or _failed())

    @contextmanager
    def _until_client_goes(self) -> Iterator[None]:
        """Cancels what is done in the block when the client goes."""
        watching = asyncio.create_task(self._cancel_when_client_goes())
        try:
            yield
        finally:
            watching.cancel()

    async def _cancel_when_client_goes(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._response.complete:
            self._client_gone = True
            self._answering.cancel()

    async def _read(self) -> bytes:
        """Checks the head, and reads the body.

        Raises:
            ApiError: the endpoint refuses all requests, or this one has no key, or too long or too slow a body.
            _ClientGone: before the body's end.
        """
        settings = self._service.settings
        if self._endpoint.refusal:
            raise self._endpoint.refusal()
        if not self._endpoint.open:
            check_key(self._headers, settings.api_keys)
        if self._endpoint.body is not None:
            check_media_type(self._headers, form=self._endpoint.form)
        length = self._headers.get("content-length", "0")
        if length.isdecimal() and int(length) > settings.body_bytes:
            raise _too_long(settings.body_bytes)
        body = bytearray()
        deadline = self._call.began + settings.body_s
        more = True
        while more:
            message = await self._receive_in_time(deadline)
            if message["type"] == "http.disconnect":
                raise _ClientGone
            body += message.get("body", b"")
            if len(body) > settings.body_bytes:
                raise _too_long(settings.body_bytes)
            more = message.get("more_body", False)
        return bytes(body)

    async def _receive_in_time(self, deadline: float) -> Message:
        settings = self._service.settings
        left = deadline - monotonic()
        try:
            async with asyncio.timeout(min(settings.patience_s, left)):
                return await self._receive()
        except TimeoutError:
            problem = f"nothing of the body came for {settings.patience_s:g} s, and it is not whole: send it again"
            if left <= settings.patience_s:
                problem = f"the body was not whole within {settings.body_s:g} s: send it faster, or a shorter one"
            raise ApiError(408, problem, code="timeout") from None

    async def _decode(self, body: bytes) -> Any:
        if self._endpoint.body is None:
            return None
        if not self._endpoint.form:
            return decode(body, self._endpoint.body)
        try:
            return await read_form(self._headers, body, self._endpoint.body)
        except MultiPartException as error:
            raise ApiError(400, f"the body is not multipart/form-data: {error.message}", code="invalid_form") from None

    def _log_failure(self, error: BaseException) -> None:
        """Says where, and not what: the words of an exception can be those of a prompt."""
        frames = "".join(traceback.format_tb(error.__traceback__))
        _log.error("request %s failed with %s in\n%s", self._call.id, type(error).__name__, frames)

    def _count(self) -> None:
        call = self._call
        status = CLIENT_GONE if self._client_gone else self._response.status or 500
        self._service.metrics.ended(self._endpoint.path, call, status)
        # The path as it is served: a client's own may have anything in it, an API key too.
        path = self._endpoint.path.replace(":path", "") or UNKNOWN_PATH
        facts: dict[str, Any] = {"method": self._method, "path": path, "status": status}
        if call.model:
            facts["model"] = call.model
        if call.prompt_tokens or call.completion_tokens:
            facts["prompt_tokens"], facts["completion_tokens"] = call.prompt_tokens, call.completion_tokens
        log(logging.INFO, "request", facts | {"seconds": round(monotonic() - call.began, 6), "request_id": call.id})


class _ClientGone(Exception):
    """The client has closed its end."""


def _failed() -> ApiError:
    return ApiError(500, "the server has failed on this request; its log says how", code="internal")


def _too_long(limit: int) -> ApiError:
    return ApiError(413, f"the body is longer than the {limit:,} bytes that are read", code="body_too_long")
