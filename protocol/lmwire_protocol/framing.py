"""Bytes to lines, and back: the only code that knows where a line ends."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

PREFIX_BYTES = 1024
"""How much of an over-long line is kept: enough to recover an id that stands first."""

_SEPARATORS: Final = [(char.encode(), b"\\u%04x" % ord(char)) for char in "\u2028\u2029\u0085"]


class Line(NamedTuple):
    """One line without its newline and without one trailing carriage return."""

    data: bytes
    overlong: bool = False
    """The line broke the limit: `data` is its first 1,024 bytes, the rest was skipped."""


class LineSplitter:
    """Cuts a stream of bytes into lines at 0x0A, and finds the next line again after an over-long one.

    Feeding costs time proportional to the bytes fed, however they are cut. Empty lines are dropped.

    Args:
        limit: the longest line that is returned whole, in bytes without the newline.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Line]:
        """Takes the next bytes and yields the lines that they complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._append(end)
            yield from self.finish()
        self._append(rest)

    def finish(self) -> Iterator[Line]:
        """Yields what has come since the last newline: the last line of a stream may lack it."""
        data, skipping = b"".join(self._parts), self._skipping
        self._parts, self._size, self._skipping = [], 0, False
        if skipping:
            yield Line(data, overlong=True)
            return
        if data.endswith(b"\r"):
            data = data[:-1]
        if data.strip(b" \t\r"):
            yield Line(data)

    @property
    def partial(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._size > 0

    def _append(self, data: bytes) -> None:
        if not data:
            return
        self._size += len(data)
        if self._skipping:
            return
        self._parts.append(data)
        # One more than the limit may still be a carriage return, which does not count.
        if self._size > self._limit + (data[-1] == 0x0D):
            self._parts = [b"".join(self._parts)[:PREFIX_BYTES]]
            self._skipping = True


def escape_separators(line: bytes) -> bytes:
    """Escapes U+2028, U+2029 and U+0085, at which many languages' line readers split. `line` is JSON in UTF-8."""
    if line.isascii():  # by far the quickest to tell, and most lines are
        return line
    for separator, escaped in _SEPARATORS:
        line = line.replace(separator, escaped)
    return line


def json_bytes(text: str) -> int:
    """The length of a text as JSON on the wire, quotes included."""
    return len(escape_separators(msgspec.json.encode(text)))
