"""Pipes with faults between the worker and its host."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from lmwire_protocol import escape_separators

from ...process.stdio import Pipes
from ..catalogue import Chosen
from .process import OTHER_VERSION, complain, die, leave_a_child

_NOBODY = "nobody-sent-this"


class Line(NamedTuple):
    """One line from the worker, with its newline."""

    data: bytes
    event: dict[str, Any]
    tokens: int
    """Token events since the start, with this one."""
    is_first: bool
    """It is the first token event of its request."""

    @property
    def is_token(self) -> bool:
        """Return whether the line is a token event."""
        return self.event.get("event") == "token"

    @property
    def is_terminal(self) -> bool:
        """Return whether the line ends a request."""
        return self.event.get("event") in ("done", "error") and "id" in self.event

    @property
    def ends_answer(self) -> bool:
        """Return whether the line ends a generation."""
        return "finish_reason" in self.event

    @property
    def is_hello(self) -> bool:
        """Return whether the line answers a hello."""
        return self.event.get("event") == "done" and "protocol" in self.event

    def changed(self, **fields: Any) -> "Line":
        """Return the line with changed fields."""
        event = self.event | fields
        return self._replace(data=_line(**event), event=event)


LineFault = Callable[[Line], Iterator[Line | bytes]]
"""Yields the parts that replace a line. Bytes are written unchanged; lines pass through the next fault."""


def apply_line_faults(line: Line, faults: Sequence[LineFault]) -> Iterator[bytes]:
    """Yield the bytes to write for a line. The caller writes each part before it takes the next.

    Args:
        line: The line.
        faults: The faults that it passes through, in order.
    """
    if not faults:
        yield line.data
        return
    for part in faults[0](line):
        if isinstance(part, Line):
            yield from apply_line_faults(part, faults[1:])
        else:
            yield part


def _no_hello(line: Line) -> Iterator[Line | bytes]:
    if not line.is_hello:
        yield line


def _wrong_version(line: Line) -> Iterator[Line | bytes]:
    yield line.changed(protocol=OTHER_VERSION) if line.is_hello else line


def _crash_mid_line(line: Line, after: int, **death: Any) -> Iterator[Line | bytes]:
    if line.ends_answer or (line.is_token and line.tokens >= after):
        yield line.data[: len(line.data) // 2]
        die(**death)
    yield line


def _crash_mid_stream(line: Line, after: int, **death: Any) -> Iterator[Line | bytes]:
    if line.ends_answer:
        die(**death)
    yield line
    if line.is_token and line.tokens >= after:
        die(**death)


def _crash_after_terminal(line: Line, **death: Any) -> Iterator[Line | bytes]:
    yield line
    if line.ends_answer:
        die(**death)


def _garbage_between_events(line: Line) -> Iterator[Line | bytes]:
    yield line
    if line.is_first:
        yield b"WARNING: something printed this line\n"


def _garbage_half_line(line: Line) -> Iterator[Line | bytes]:
    if line.is_first:
        yield b"loading shards: 50%"
    yield line


def _long_line(line: Line, bytes: int) -> Iterator[Line | bytes]:
    if line.is_first:
        padded = line.changed(padding="")
        line = padded.changed(padding="x" * (bytes + 1 - len(padded.data)))
    yield line


def _stderr_flood(line: Line, bytes: int) -> Iterator[Line | bytes]:
    if line.is_terminal:
        complain((b"x" * 63 + b"\n") * (bytes // 64))
    yield line


def _duplicate_terminal(line: Line) -> Iterator[Line | bytes]:
    yield line
    if line.ends_answer:
        yield line


def _event_after_terminal(line: Line) -> Iterator[Line | bytes]:
    yield line
    if line.ends_answer:
        yield _line(event="token", id=line.event["id"], token="too late", token_ids=[0])


def _unknown_id(line: Line) -> Iterator[Line | bytes]:
    yield line
    if line.is_first:
        yield _line(event="token", id=_NOBODY, token="not yours", token_ids=[0])
        yield _line(event="done", id=_NOBODY)


def _unknown_event(line: Line) -> Iterator[Line | bytes]:
    yield line
    if line.is_first:
        yield _line(event="weather", id=line.event["id"], sky="clear")
        yield _line(event="weather", sky="clear")


def _unknown_fields(line: Line) -> Iterator[Line | bytes]:
    yield line.changed(**_with_more(line.event))


def _unknown_values(line: Line) -> Iterator[Line | bytes]:
    strange: dict[str, Any] = {
        "finish_reason": "daydreaming",
        "code": "out_of_luck",
        "stage": "tuning",
        "unit": "miles",
    }
    strange |= {"state": "meditating", "channel": "whisper"}
    strange |= {"choices": [{**choice, "finish_reason": "daydreaming"} for choice in line.event.get("choices", [])]}
    yield line.changed(**{name: value for name, value in strange.items() if name in line.event})


def _with_more(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _with_more(item) for name, item in value.items()} | {"moon_phase": {"waxing": [1, None, "π"]}}


LINE_FAULTS: Final[dict[str, Callable[..., Iterator[Line | bytes]]]] = {
    "no-hello": _no_hello,
    "wrong-version": _wrong_version,
    "crash-mid-line": _crash_mid_line,
    "crash-mid-stream": _crash_mid_stream,
    "crash-after-terminal": _crash_after_terminal,
    "garbage-between-events": _garbage_between_events,
    "garbage-half-line": _garbage_half_line,
    "long-line": _long_line,
    "stderr-flood": _stderr_flood,
    "duplicate-terminal": _duplicate_terminal,
    "event-after-terminal": _event_after_terminal,
    "unknown-id": _unknown_id,
    "unknown-event": _unknown_event,
    "unknown-fields": _unknown_fields,
    "unknown-values": _unknown_values,
}


def _line(**event: Any) -> bytes:
    return escape_separators(msgspec.json.encode(event)) + b"\n"


PIPE_FAULTS: Final = ("garbage-before-hello", "grandchild", "ignore-quit", "ignore-eof", "ignore-sigterm")
"""The faults of the pipes themselves."""

_BANNER_LINE = b"Last login: Friday 13\n"


class FaultyPipes(Pipes):
    """Pipes that lose, add and change lines.

    Args:
        io: The real pipes.
        faults: The faults, in the order in which a line passes through them.
    """

    def __init__(self, io: Pipes, faults: Iterable[Chosen]) -> None:
        super().__init__(io.stdin, io.stdout, io.stray_stdout)
        chosen = {name: parameters for name, parameters in faults}
        self._line_faults = [partial(LINE_FAULTS[name], **chosen[name]) for name in chosen if name in LINE_FAULTS]
        self._deaf_to_eof = "ignore-eof" in chosen or "ignore-sigterm" in chosen
        self._deaf_to_quit = "ignore-quit" in chosen or self._deaf_to_eof
        self._half_line = b""
        self._tokens = 0
        self._answering: set[str] = set()
        if "garbage-before-hello" in chosen:
            super().write(_banner(**chosen["garbage-before-hello"]))
        if "grandchild" in chosen:
            leave_a_child(io.stdin, io.stdout, **chosen["grandchild"])

    def read(self, size: int) -> bytes:
        """Read, without the lines and the end that the faults ignore."""
        while data := super().read(size):
            if not self._deaf_to_quit:
                return data
            *lines, self._half_line = (self._half_line + data).split(b"\n")
            if heard := [line + b"\n" for line in lines if not _is_quit(line)]:
                return b"".join(heard)
        if self._deaf_to_eof:
            threading.Event().wait()
        rest, self._half_line = self._half_line, b""
        return rest

    def write(self, data: bytes) -> None:
        """Write each line with its faults."""
        for line in data.splitlines(keepends=True):
            for part in apply_line_faults(self._describe(line), self._line_faults):
                super().write(part)

    def _describe(self, data: bytes) -> Line:
        event: dict[str, Any] = msgspec.json.decode(data)
        kind, id = event.get("event"), event.get("id", "")
        is_first = kind == "token" and id not in self._answering
        if kind == "token":
            self._tokens += 1
            self._answering.add(id)
        elif kind in ("done", "error"):
            self._answering.discard(id)
        return Line(data, event, self._tokens, is_first)


def _banner(bytes: int) -> bytes:
    return (_BANNER_LINE * (bytes // len(_BANNER_LINE) + 1))[: bytes - 1] + b"\n"


def _is_quit(line: bytes) -> bool:
    try:
        command = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(command, dict) and command.get("cmd") == "quit"
