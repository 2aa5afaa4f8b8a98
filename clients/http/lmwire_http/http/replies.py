"""Replies of endpoints: JSON, other content, an event stream, or a stream of lines."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from ..errors import ApiError
from .sse import WaitingEvent


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


class Streamable(Protocol):
    """A result that an endpoint can send as a whole or as a stream."""

    @property
    def waiting(self) -> WaitingEvent:
        """The event that the stream sends during silence, from the request's start on."""
        ...

    async def whole(self) -> Reply:
        """Return the result when it is complete."""
        ...

    def frames(self) -> AsyncIterator[bytes]:
        """Yield the result's events as they come."""
        ...


async def reply_with(result: Streamable, *, stream: bool | None) -> Reply:
    """Return a result as a stream if the client wants one, else as a whole.

    Args:
        result: The result, which runs only when it is read.
        stream: The request's `stream` field.
    """
    return EventStream(result.frames(), result.waiting) if stream else await result.whole()
