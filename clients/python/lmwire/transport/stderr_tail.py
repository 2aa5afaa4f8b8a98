"""The last lines of a process's stderr."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from lmwire_protocol import Line, LineSplitter

_LINES: Final = 64
_LINE_BYTES: Final = 1024


class StderrTail:
    """Splits stderr into lines, and keeps the last 64, each cut to 1,024 bytes.

    Args:
        on_line: Called with each line.
    """

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._splitter = LineSplitter(_LINE_BYTES)
        self._lines: deque[str] = deque(maxlen=_LINES)

    @property
    def lines(self) -> list[str]:
        """Return the last lines."""
        return list(self._lines)

    def feed(self, data: bytes) -> None:
        """Take bytes of stderr, cut anywhere."""
        self._add(self._splitter.feed(data))

    def finish(self) -> None:
        """Take the end of stderr: a partial line counts as a line."""
        self._add(self._splitter.finish())

    def _add(self, lines: Iterable[Line]) -> None:
        for line in lines:
            text = line.data.decode(errors="replace")
            self._lines.append(text)
            if self._on_line:
                self._on_line(text)
