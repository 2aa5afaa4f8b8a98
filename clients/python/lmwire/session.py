"""One session with a worker, without input or output: commands in, bytes out; bytes in, events out.

It owns the request ids and knows what the protocol asks of a client. It has no threads, no pipes and no clock; its
owner makes one call at a time.
"""

from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lmwire_protocol import Command, Hello, encode_command, events
from lmwire_protocol.decoding import without_nulls
from lmwire_protocol.limits import BANNER_BYTES, CLIENT_LINE_BYTES, PROTOCOL_VERSION

from .dones import read_done
from .errors import ProtocolViolation
from .pieces import CallPiece, Piece

Event: TypeAlias = Piece | CallPiece | events.Embedding | events.Segment | events.Progress | events.Error | events.Done


class Arrival(NamedTuple):
    """What a read brought for one request: its events in order. A terminal (`Done` or `Error`) stands last."""

    id: str
    events: list[Event]


_decode = msgspec.json.Decoder(Event).decode
_decode_any = msgspec.json.Decoder().decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NEEDED: Final = frozenset({"token", "tool_call", "embedding", "segment", "done", "error"})
_QUOTED_BYTES = 200


class Session:
    """The client's end of the protocol.

    Attributes:
        notices: errors that belong to no request, for the owner to take out.
        violation: set when the worker broke the protocol. Nothing is read from then on; the owner ends the worker.
    """

    def __init__(self) -> None:
        self.notices: list[events.Error] = []
        self.violation: ProtocolViolation | None = None
        self._ids = count(1)
        self._pending: dict[str, type[Command]] = {}
        self._half_line: list[bytes] = []
        self._half_line_bytes = 0
        self._banner_bytes = 0
        self._greeted = False

    @property
    def works(self) -> bool:
        """Return whether a request is in flight that the worker's engine serves."""
        return any(not command.out_of_band for command in self._pending.values())

    def send(self, command: Command) -> tuple[str, bytes]:
        """Opens a request and returns its id and the line to write.

        Raises:
            UnicodeEncodeError: a string holds half a surrogate pair, which UTF-8 cannot carry.
            TypeError: a field holds something that JSON cannot carry.
        """
        id = str(next(self._ids))
        line = encode_command(id, command)
        self._pending[id] = type(command)
        return id, line

    def receive(self, data: bytes) -> list[Arrival]:
        """Takes the worker's next bytes, cut anywhere, and returns what they complete, one entry a request."""
        if self.violation:
            return []
        arrivals: dict[str, list[Event]] = {}
        pending = self._pending
        for line in self._lines(data):
            if len(line) > CLIENT_LINE_BYTES:
                self._violate(f"a line longer than {CLIENT_LINE_BYTES} bytes", line)
            if self.violation:
                break
            # This loop runs once a token and is the client's speed, hence inline and not in functions.
            try:
                event = _decode(line)
            except _UNREADABLE as error:
                if (event := self._read_again(line, error)) is None:
                    continue
            id = event.id
            if id not in pending:
                if id is None:
                    self.notices.append(event)
                continue
            if type(event) is not Piece and (event := self._end(id, event, line)) is None:
                continue
            if id in arrivals:
                arrivals[id].append(event)
            else:
                arrivals[id] = [event]
        if self._half_line_bytes > CLIENT_LINE_BYTES:
            self._violate(f"a line longer than {CLIENT_LINE_BYTES} bytes", b"".join(self._half_line))
        return [Arrival(id, events) for id, events in arrivals.items()]

    def finish(self) -> list[str]:
        """Discards half a line, as the output has ended, and returns the requests that are left without a terminal."""
        self._half_line, self._half_line_bytes = [], 0
        left = list(self._pending)
        self._pending.clear()
        return left

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes. Takes time proportional to the bytes, however they are cut."""
        *lines, half = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._half_line, lines[0]))
            self._half_line, self._half_line_bytes = [], 0
        self._half_line.append(half)
        self._half_line_bytes += len(half)
        return lines

    def _end(self, id: str, event: Event, line: bytes) -> Event | None:
        """Closes the request if `event` is its terminal, and reads a `done` as the command's own Struct."""
        if isinstance(event, CallPiece | events.Embedding | events.Segment | events.Progress):
            return event
        command = self._pending[id]
        try:
            terminal = read_done(line, command) if isinstance(event, events.Done) else event
        except msgspec.ValidationError as error:
            return self._violate(f"a `done` that is none of `{command.name}` ({error})", line)
        if isinstance(terminal, events.HelloDone) and terminal.protocol != PROTOCOL_VERSION:
            return self._violate(f"that it agrees on version {terminal.protocol}, which was not offered", line)
        del self._pending[id]
        self._greeted = self._greeted or command is Hello
        return terminal

    def _read_again(self, line: bytes, error: Exception) -> Any:
        """Reads a line that is an event but for members that are null, which count as absent."""
        try:
            return msgspec.convert(without_nulls(_decode_any(line)), Event)
        except _UNREADABLE:
            return self._skip(line, error)

    def _skip(self, line: bytes, error: Exception) -> None:
        """Passes over a line that is no event of protocol 1, where the protocol allows one."""
        if not self._greeted:
            self._banner_bytes += len(line) + 1
            if self._banner_bytes > BANNER_BYTES:
                self._violate(f"more than {BANNER_BYTES} bytes ahead of the reply to hello", line)
            return
        try:
            value = _decode_any(line)
        except _UNREADABLE:
            value = None
        if not isinstance(value, dict):
            if line.strip():
                self._violate("a line that is no JSON object", line)
        elif value.get("event") in _NEEDED:
            self._violate(f"a broken `{value['event']}` event ({error})", line)

    def _violate(self, what: str, line: bytes) -> None:
        quoted = line[:_QUOTED_BYTES].decode(errors="backslashreplace")
        self.violation = self.violation or ProtocolViolation(f"the worker wrote {what}: {quoted!r}")
