"""A session with a worker, without input or output: it turns commands into bytes, and bytes into events.

The session owns the request ids and follows the protocol's rules for clients. It has no threads, no pipes and no clock.
Its owner makes one call at a time.
"""

from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from lmwire_protocol import Command, Hello, encode_command, events
from lmwire_protocol.decoding import without_nulls
from lmwire_protocol.limits import BANNER_BYTES, CLIENT_LINE_BYTES, LINE_IN_BYTES, PROTOCOL_VERSION

from ..errors import InvalidRequest, ProtocolViolation
from .deltas import TokenDelta, ToolCallDelta
from .results import decode_done

if TYPE_CHECKING:
    from lmwire_protocol.json_value import JsonValue

Event: TypeAlias = (
    TokenDelta
    | ToolCallDelta
    | events.Embedding
    | events.Segment
    | events.Audio
    | events.Progress
    | events.Error
    | events.Done
)


class RequestEvents(NamedTuple):
    """The events that one read brought for one request, in order. A terminal (`Done` or `Error`) is the last."""

    id: str
    events: list[Event]


_decode = msgspec.json.Decoder(Event).decode
_decode_any = msgspec.json.Decoder().decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_REQUIRED_EVENTS: Final = frozenset({"token", "tool_call", "embedding", "segment", "audio", "done", "error"})
_QUOTE_BYTES = 200


def too_long(size: int) -> events.Error:
    """Return the error of a request whose line is longer than a worker takes; the worker's answer would be the same."""
    sentence = (
        f"the request's line has {size} bytes, more than {LINE_IN_BYTES}; name media by a path, or shorten the text"
    )
    return events.Error(error=sentence, code="line_too_long", retryable=False)


class ClientSession:
    """The client's end of one session.

    Attributes:
        notices: Errors that do not belong to a request.
        violation: Set when the worker breaks the protocol. The session reads no more, and the owner ends the worker.
    """

    def __init__(self) -> None:
        self.notices: list[events.Error] = []
        self.violation: ProtocolViolation | None = None
        self._ids = count(1)
        self._pending: dict[str, type[Command]] = {}
        self._partial_line: list[bytes] = []
        self._partial_line_bytes = 0
        self._banner_bytes = 0
        self._handshake_done = False

    @property
    def busy(self) -> bool:
        """Return whether a request is in flight that the worker's engine serves."""
        return any(not command.out_of_band for command in self._pending.values())

    def send(self, command: Command) -> tuple[str, bytes]:
        """Open a request, and return its id and the line to write.

        Raises:
            InvalidRequest: The line is longer than a worker takes.
            UnicodeEncodeError: A string contains half of a surrogate pair, which UTF-8 cannot represent.
            TypeError: A field contains a value that JSON cannot represent.
        """
        id = str(next(self._ids))
        line = encode_command(id, command)
        if (size := len(line) - len(b"\n")) > LINE_IN_BYTES:
            raise InvalidRequest(too_long(size))
        self._pending[id] = type(command)
        return id, line

    def receive(self, data: bytes) -> list[RequestEvents]:
        """Take the worker's next bytes, cut anywhere, and return the events that they complete, grouped by request."""
        if self.violation:
            return []
        received: dict[str, list[Event]] = {}
        pending = self._pending
        for line in self._lines(data):
            if len(line) > CLIENT_LINE_BYTES:
                self._violate(f"a line longer than {CLIENT_LINE_BYTES} bytes", line)
            if self.violation:
                break
            # This loop runs once a token and decides the client's speed, so it calls no functions of its own.
            try:
                event = _decode(line)
            except _UNREADABLE as error:
                if (event := self._decode_without_nulls(line, error)) is None:
                    continue
            id = event.id
            if id not in pending:
                if id is None:
                    self.notices.append(event)  # pyrefly: ignore[bad-argument-type] : no other event lacks an id
                continue
            if type(event) is not TokenDelta and (event := self._close_request(id, event, line)) is None:
                continue
            if id in received:
                received[id].append(event)  # pyrefly: ignore[bad-argument-type] : never None here
            else:
                received[id] = [event]  # pyrefly: ignore[unsupported-operation]
        if self._partial_line_bytes > CLIENT_LINE_BYTES:
            self._violate(f"a line longer than {CLIENT_LINE_BYTES} bytes", b"".join(self._partial_line))
        return [RequestEvents(id, events) for id, events in received.items()]

    def take_notices(self) -> list[events.Error]:
        """Return the notices, and forget them."""
        notices, self.notices = self.notices, []
        return notices

    def finish(self) -> list[str]:
        """Take the end of the output: discard a partial line, and return the ids of requests without a terminal."""
        self._partial_line, self._partial_line_bytes = [], 0
        unfinished = list(self._pending)
        self._pending.clear()
        return unfinished

    def _lines(self, data: bytes) -> list[bytes]:
        """Return the lines that the data completes, in time proportional to its length, however it is cut."""
        *lines, half = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._partial_line, lines[0]))
            self._partial_line, self._partial_line_bytes = [], 0
        self._partial_line.append(half)
        self._partial_line_bytes += len(half)
        return lines

    def _close_request(self, id: str, event: Event, line: bytes) -> Event | None:
        """Close the request if the event is its terminal, and decode a `done` as the command's own Struct."""
        if isinstance(event, ToolCallDelta | events.Embedding | events.Segment | events.Audio | events.Progress):
            return event
        command = self._pending[id]
        try:
            terminal = decode_done(line, command) if isinstance(event, events.Done) else event
        except msgspec.ValidationError as error:
            return self._violate(f"a `done` that is not one of `{command.name}` ({error})", line)
        if isinstance(terminal, events.HelloDone) and terminal.protocol != PROTOCOL_VERSION:
            return self._violate(f"that it agrees on version {terminal.protocol}, which was not offered", line)
        del self._pending[id]
        self._handshake_done = self._handshake_done or command is Hello
        return terminal

    def _decode_without_nulls(self, line: bytes, error: Exception) -> Any:
        """Decode a line without its null members, which count as absent."""
        try:
            return msgspec.convert(without_nulls(_decode_any(line)), Event)
        except _UNREADABLE:
            return self._reject_or_skip(line, error)

    def _reject_or_skip(self, line: bytes, error: Exception) -> None:
        """Skip a blank line, a banner's and an event of a later version. Any other line is the violation."""
        if not line.strip(b" \t\r"):
            return
        try:
            value: JsonValue = _decode_any(line)
        except _UNREADABLE:
            value = None
        if not isinstance(value, dict):
            self._banner_bytes += len(line) + 1
            if self._handshake_done:
                self._violate("a line that is not a JSON object", line)
            elif self._banner_bytes > BANNER_BYTES:
                self._violate(f"more than {BANNER_BYTES} bytes before the reply to hello", line)
        elif isinstance(kind := value.get("event"), str) and kind in _REQUIRED_EVENTS:
            self._violate(f"a broken `{kind}` event ({error})", line)

    def _violate(self, problem: str, line: bytes) -> None:
        quoted = line[:_QUOTE_BYTES].decode(errors="backslashreplace")
        self.violation = self.violation or ProtocolViolation(f"the worker wrote {problem}: {quoted!r}")
