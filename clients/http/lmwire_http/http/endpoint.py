"""Endpoints as data, from which routes, metrics and the OpenAPI document are made, and the replies that they give."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ..errors import ApiError
from .error_formats import OPENAI_ERRORS, ErrorFormat
from .sse import WaitingEvent
from .unknown_fields import Alias

if TYPE_CHECKING:
    from .context import RequestContext

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class Json:
    """A Struct or plain data, sent as JSON."""

    value: Any
    status: int = 200


@dataclass(frozen=True, slots=True)
class Plain:
    """Content of any other type."""

    content: bytes
    media_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class EventStream:
    """Server-sent events, sent as they come.

    An exception before the first event is sent as an ordinary error response, a later one as the stream's last event.
    """

    frames: AsyncIterator[bytes]
    """Pieces of one or more whole events. The iterator is closed when the client disconnects."""
    waiting: WaitingEvent
    """The event that is sent during silence."""
    encode_error: Callable[[ApiError], bytes] | None = None
    """Returns the events that end the stream with an error; None for the error format's own event."""


@dataclass(frozen=True, slots=True)
class ByteStream:
    """Content of any other type, sent as it comes.

    An exception before the first byte is sent as an ordinary error response. A later one closes the connection, so that
    the client does not take what it has for the whole.
    """

    content: AsyncIterator[bytes]
    """Parts of the content, empty ones included. The iterator is closed when the client disconnects."""
    media_type: str


@dataclass(frozen=True, slots=True)
class LineStream:
    """Lines of JSON, sent as they come. Nothing is sent during silence: a line without a meaning does not exist.

    An exception before the first line is sent as an ordinary error response, a later one as the stream's last line.
    """

    lines: AsyncIterator[bytes]
    """Pieces of one or more whole lines. The iterator is closed when the client disconnects."""


Reply: TypeAlias = Json | Plain | EventStream | ByteStream | LineStream
Handler: TypeAlias = "Callable[[RequestContext, Any], Awaitable[Reply]]"
"""Handles a request: receives its context and its body, or None without a body. Raises ApiError."""


class Streamable(ABC, Generic[Body]):
    """The result of one request, which can be sent as a whole or as a stream. It runs only when it is read.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    waiting: WaitingEvent
    """The event that the stream sends during silence, from the request's start on."""

    def __init__(self, context: "RequestContext", body: Body) -> None:
        self._context, self._body = context, body

    async def reply(self, *, stream: bool | None) -> Reply:
        """Return the result as a stream if the client wants one, else as a whole.

        Args:
            stream: The request's `stream` field.
        """
        return self.stream() if stream else await self.whole()

    def stream(self) -> EventStream:
        """Return the stream of the result's events."""
        return EventStream(self.frames(), self.waiting)

    @abstractmethod
    async def whole(self) -> Reply:
        """Return the result when it is complete."""

    @abstractmethod
    def frames(self) -> AsyncIterator[bytes]:
        """Yield the result's events as they come."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method of one path.

    Args:
        method: The HTTP method: `GET`, `POST` or `DELETE`.
        path: The path, such as `/v1/models/{model:path}`.
        summary: A line for the OpenAPI document.
        handler: Handles a request.
        error_format: The format of errors.
        request_type: The Struct of the body; None without a body.
        aliases: Other names of the body's fields, as other servers have them.
        is_form: Whether the body is multipart/form-data. An uploaded file is a field of type bytes.
        takes_curl_type: Whether JSON may have the media type that curl sends by default.
        response_type: The type of the JSON response; None without one.
        text_media_types: Media types that the response can have instead.
        event_type: The type of a stream's events, if the response can be a stream of server-sent events.
        line_type: The type of a stream's lines, if the response can be a stream of lines.
        status_types: The types of JSON responses with other statuses, errors excluded.
        error_statuses: Statuses of errors that other endpoints do not have.
        is_public: Whether no API key is needed.
        required_header: A header, in lower case, without which another endpoint of the same path serves a request.
        always_fails_with: Returns the error for every request, before its body is read; None for real endpoints.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    error_format: ErrorFormat = OPENAI_ERRORS
    request_type: Any = None
    aliases: Mapping[str, Alias] = field(default_factory=dict[str, Alias])
    is_form: bool = False
    takes_curl_type: bool = False
    response_type: Any = None
    text_media_types: Sequence[str] = ()
    event_type: Any = None
    line_type: Any = None
    status_types: Mapping[int, Any] = field(default_factory=dict[int, Any])
    error_statuses: Sequence[int] = ()
    is_public: bool = False
    required_header: str | None = None
    always_fails_with: "Callable[[], ApiError] | None" = None


def endpoint(method: str, path: str, **fields: Any) -> Callable[[Handler], Endpoint]:
    """Return a decorator that makes an endpoint of its handler.

    The handler's docstring is the summary, and the type of its second parameter that of the body.

    Args:
        method: The HTTP method: `GET`, `POST` or `DELETE`.
        path: The path, such as `/v1/models/{model:path}`.
        fields: Other fields of the endpoint.
    """

    def make(handler: Handler) -> Endpoint:
        _, request_type, *_ = get_annotations(handler).values()
        summary = handler.__doc__ or ""
        return Endpoint(method=method, path=path, summary=summary, handler=handler, request_type=request_type, **fields)

    return make
