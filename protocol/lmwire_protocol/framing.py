"""Splitting of a byte stream into lines. No other code knows where a line ends."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

PREFIX_BYTES = 1024
"""Bytes of an over-long line that are kept: enough to recover an id that is the first member."""

_SEPARATORS: Final = [(char.encode(), b"\\u%04x" % ord(char)) for char in "\u2028\u2029\u0085"]


class Line(NamedTuple):
    """One line without its newline and without one trailing carriage return."""

    data: bytes
    overlong: bool = False
    """True if the line exceeds the limit: `data` is its first 1,024 bytes, and the rest was skipped."""


class LineSplitter:
    """Splits a stream of bytes into lines at 0x0A, and continues with the next line after an over-long one.

    Feeding takes time proportional to the bytes fed, however they are cut. Empty lines are dropped.

    Args:
        limit: Length of the longest line that is returned whole, in bytes without the newline.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Line]:
        """Take the next bytes and yield the lines that they complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._append(end)
            yield from self.finish()
        self._append(rest)

    def finish(self) -> Iterator[Line]:
        """Yield the bytes since the last newline: the last line of a stream may lack its newline."""
        data, skipping = b"".join(self.parts), self._skipping
        self.parts, self._size, self._skipping = [], 0, False
        if skipping:
            yield Line(data, overlong=True)
            return
        if data.endswith(b"\r"):
            data = data[:-1]
        if data.strip(b" \t\r"):
            yield Line(data)

    @property
    def partial(self) -> bool:
        """Return whether a line has started and not ended."""
        return self._size > 0

    def _append(self, data: bytes) -> None:
        if not data:
            return
        self._size += len(data)
        if self._skipping:
            return
        self.parts.append(data)
        # One more than the limit may still be a carriage return, which does not count.
        if self._size > self._limit + (data[-1] == 0x0D):
            self.parts = [b"".join(self.parts)[:PREFIX_BYTES]]
            self._skipping = True


def escape_separators(line: bytes) -> bytes:
    """Escape U+2028, U+2029 and U+0085, at which many languages' line readers split. `line` is JSON in UTF-8."""
    if line.isascii():  # the quickest check, and most lines are ASCII
        return line
    for separator, escaped in _SEPARATORS:
        line = line.replace(separator, escaped)
    return line


def json_bytes(text: str) -> int:
    """Return the length of a text's JSON form on the wire in bytes, quotes included."""
    return len(escape_separators(msgspec.json.encode(text)))
