"""The handling of one HTTP request, from its head to the end of its response.

The endpoint runs in a task. After the body has been read, a second task waits for the client to disconnect. It then
cancels the first one in any state: queued, before the first byte, or in a stream. The endpoint's own `async with`
blocks release what it holds.
"""

import asyncio
import logging
import re
import secrets
import traceback
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, TypeAlias

from starlette.datastructures import Headers, QueryParams

from ..errors import ApiError
from ..telemetry.logs import log_facts, redact
from ..telemetry.traces import FinishedRequest
from .api_keys import find_api_key, identify_client
from .body import BodyCollector, body_too_long, decompressed, is_compressed, weigh
from .context import AppState, RequestContext
from .decoding import check_media_type, check_template, decode_json, read_form
from .endpoint import Endpoint
from .response_writer import Message, ResponseWriter, Send
from .unknown_fields import UnknownFields

Receive: TypeAlias = Callable[[], Awaitable[Message]]

CLIENT_CLOSED_REQUEST: Final = 499
"""Status in the log for a request whose client disconnected, as in nginx."""
UNKNOWN_PATH: Final = "unknown"
"""Path in the log for all paths without an endpoint."""
_SMALL_BYTES: Final = 256 * 1024
"""Length of a body up to which the event loop itself may decode it."""
_SMALL_WEIGHT: Final = 128 * 1024
"""Weight of such a body, which then takes some milliseconds; see `body.weigh`."""
_FINAL_ERROR_S: Final = 1.0
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_log = logging.getLogger("lmwire_http")


class RequestHandler:
    """Handler of one request.

    Args:
        endpoint: The endpoint at the request's path.
        state: The server's state.
        scope: The ASGI scope.
        receive: The ASGI receive function.
        send: The ASGI send function.
    """

    def __init__(self, endpoint: Endpoint, state: AppState, scope: Message, receive: Receive, send: Send) -> None:
        self._endpoint, self._state = endpoint, state
        self._receive = receive
        self._method = scope["method"]
        self._headers = Headers(scope=scope)
        self._peer = scope.get("client")
        # An id that contains an API key does not match, since it would be in the response and in the log.
        given = redact(self._headers.get("x-request-id", ""), state.settings.api_keys)
        self._context = RequestContext(
            id=given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(16)}",
            state=state,
            headers=self._headers,
            path_params=scope.get("path_params", {}),
            query=QueryParams(scope["query_string"]),
            unknown_fields=UnknownFields(endpoint.aliases, strict=state.settings.strict),
        )
        self._response = ResponseWriter(
            send, endpoint.error_format, self._context.id, state.settings.keep_alive_s, self._context.unknown_fields
        )
        self._disconnected = False
        self._interruption: ApiError | None = None

    async def run(self) -> None:
        """Handle the request. Every error becomes a response."""
        if _log.isEnabledFor(logging.DEBUG):
            log_facts(logging.DEBUG, "request received", self._facts() | {"request_id": self._context.id})
        self._response_task = asyncio.create_task(self._respond())
        try:
            with self._state.metrics.in_flight(), self._state.in_flight.track(self):
                await asyncio.wait((self._response_task,))
                await self._finish()
        finally:
            self._response_task.cancel()
            if self._context.model and (idle_s := self._context.unknown_fields.idle_s) is not None:
                self._state.pool.set_idle_limit(self._context.model, idle_s)
            self._record()

    def interrupt(self, error: ApiError) -> None:
        """End the request now with this error, unless its response is complete."""
        self._interruption = error
        self._response_task.cancel()

    async def _respond(self) -> None:
        try:
            self._check_head()
            body = await self._read_body()
            self._context.client = identify_client(self._peer, self._context.key, self._state.settings.api_keys)
            with self._cancelled_on_disconnect():
                await asyncio.sleep(0)  # a client that has left meanwhile is seen before there is any work for it
                if not self._endpoint.is_public:
                    await self._state.startup.wait()
                decoded = await self._decode_body(body)
                check_template(decoded, self._state.settings)
                await self._name_model(decoded)
                await self._response.write(await self._endpoint.handler(self._context, decoded))
        except _ClientDisconnected:
            self._disconnected = True
        except ApiError as error:
            self._context.unknown_fields.restore_alias(error)
            error.message = redact(error.message, self._state.settings.api_keys)
            await self._response.write_error(error)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # also an exit, which would end the event loop
            self._log_exception(error)
            await self._response.write_error(_internal_error())

    async def _finish(self) -> None:
        """Send the final error, if the endpoint's task ended without a complete response."""
        if not self._response_task.cancelled():
            if error := self._response_task.exception():
                self._log_exception(error)
        elif not (self._disconnected or self._response.is_complete):
            with suppress(TimeoutError):  # a client that does not read cannot receive the error
                async with asyncio.timeout(_FINAL_ERROR_S):
                    await self._response.write_error(self._interruption or _internal_error())

    @contextmanager
    def _cancelled_on_disconnect(self) -> Generator[None]:
        """Cancel the block when the client disconnects."""
        watch_task = asyncio.create_task(self._watch_for_disconnect())
        try:
            yield
        finally:
            watch_task.cancel()

    async def _watch_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._response.is_complete:
            self._disconnected = True
            self._response_task.cancel()

    def _check_head(self) -> None:
        """Check the request's head, before its body is read.

        Raises:
            ApiError: The endpoint always fails, the key is invalid, or the announced body is not acceptable.
        """
        settings = self._state.settings
        if self._endpoint.always_fails_with:
            raise self._endpoint.always_fails_with()
        if not self._endpoint.is_public:
            self._context.key = find_api_key(self._headers, settings.api_keys)
        if self._endpoint.request_type is not None:
            check_media_type(self._headers, form=self._endpoint.is_form, takes_curl_type=self._endpoint.takes_curl_type)
        length = self._headers.get("content-length", "0")
        if length.isdecimal() and int(length) > settings.max_body_bytes:
            raise body_too_long(settings.max_body_bytes)

    async def _read_body(self) -> bytes:
        """Return the body as it is sent.

        Raises:
            ApiError: The body is too long or too slow.
            _ClientDisconnected: The client disconnected before the end of the body.
        """
        settings = self._state.settings
        body = BodyCollector(settings.max_body_bytes)
        deadline = self._context.started_at + settings.body_timeout_s
        more = True
        while more:
            message = await self._receive_in_time(deadline)
            if message["type"] == "http.disconnect":
                raise _ClientDisconnected
            body.add(message.get("body", b""))
            more = message.get("more_body", False)
        return body.whole()

    async def _receive_in_time(self, deadline: float) -> Message:
        settings = self._state.settings
        remaining_s = deadline - monotonic()
        pause_s, total_s = settings.client_timeout_s, settings.body_timeout_s
        try:
            async with asyncio.timeout(min(pause_s, remaining_s)):
                return await self._receive()
        except TimeoutError:
            problem = f"no part of the body arrived for {pause_s:g} s, and it is incomplete: send it again"
            if remaining_s <= pause_s:
                problem = f"the body was not complete within {total_s:g} s: send it faster, or a shorter one"
            raise ApiError(408, problem, code="timeout") from None

    async def _decode_body(self, body: bytes) -> Any:
        if self._endpoint.request_type is None:
            return None
        self._context.is_large = self._is_large(body)
        return await self._context.beside_loop(self._decode, body)

    def _is_large(self, body: bytes) -> bool:
        if len(body) > _SMALL_BYTES or is_compressed(self._encoding):
            return True
        return not self._endpoint.is_form and weigh(body) > _SMALL_WEIGHT

    def _decode(self, body: bytes) -> Any:
        """Return the decoded body. Each step has a limit, which is checked before the step."""
        type, unknown = self._endpoint.request_type, self._context.unknown_fields
        body = decompressed(body, self._encoding, self._state.settings.max_body_bytes)
        if self._endpoint.is_form:
            return read_form(self._headers, body, type, unknown)
        if self._context.is_large:
            weigh(body)
        return decode_json(body, type, unknown)

    @property
    def _encoding(self) -> str:
        return self._headers.get("content-encoding", "")

    async def _name_model(self, body: Any) -> None:
        """Note the model's name in a body, and set it in one without it.

        Raises:
            ApiError: Not exactly one model is served.
        """
        if getattr(body, "model", None) == "":
            body.model = (await self._state.pool.served_model("")).id
        self._context.requested_model = getattr(body, "model", None) or ""

    def _log_exception(self, error: BaseException) -> None:
        """Log where an exception was raised, without its message, which may quote a prompt."""
        frames = "".join(traceback.format_tb(error.__traceback__))
        _log.error("request %s failed with %s in\n%s", self._context.id, type(error).__name__, frames)

    def _record(self) -> None:
        context = self._context
        self._state.ignored_field_log.add(context.unknown_fields)
        status = CLIENT_CLOSED_REQUEST if self._disconnected else self._response.status or 500
        seconds = monotonic() - context.started_at
        self._state.metrics.request_finished(self._endpoint.path, context.model, status, seconds)
        facts: dict[str, Any] = {**self._facts(), "status": status}
        if context.model:
            facts["model"] = context.model
        if context.prompt_tokens or context.completion_tokens:
            facts["prompt_tokens"], facts["completion_tokens"] = context.prompt_tokens, context.completion_tokens
        log_facts(
            logging.INFO,
            "request",
            facts | {"seconds": round(seconds, 6), "request_id": context.id},
        )
        if self._state.tracer and not self._endpoint.is_public:
            self._state.tracer.record(self._finished(status, seconds))

    def _finished(self, status: int, seconds: float) -> FinishedRequest:
        context = self._context
        return FinishedRequest(
            id=context.id,
            headers=context.headers,
            **self._facts(),
            status=status,
            error_code="client_disconnected" if self._disconnected else self._response.error_code,
            seconds=seconds,
            queued_s=context.queued_s,
            first_token_s=context.first_token_s,
            requested_model=context.requested_model,
            model=context.model,
            prompt_tokens=context.prompt_tokens,
            cached_tokens=context.cached_tokens,
            completion_tokens=context.completion_tokens,
            finish_reasons=context.finish_reasons,
        )

    def _facts(self) -> dict[str, Any]:
        """Return the method and the endpoint's path. The client's path may contain anything, even an API key."""
        return {"method": self._method, "path": self._endpoint.path.replace(":path", "") or UNKNOWN_PATH}


class _ClientDisconnected(Exception):
    """The client has closed its end of the connection."""


def _internal_error() -> ApiError:
    return ApiError(500, "the server has failed on this request; see its log", code="internal")
