"""Progress on stderr: bars on a terminal, and a few plain lines for a download otherwise."""

import contextlib
import os
import sys
from collections.abc import Callable, Generator
from importlib.util import find_spec
from typing import Final, Protocol, TextIO

from lmwire_protocol.printable import one_line

from .terminal_text import dim

STAGE_WORDS: Final = {
    "resolve": "Looking for the model",
    "download": "Downloading",
    "read": "Reading the weights",
    "warm_up": "Warming up",
    "prefill": "Reading the prompt",
}
_CLEAR_LINE: Final = "\r\x1b[K"
_STEPS: Final = 10
"""Number of plain lines that a download writes at most."""


class StageProgress(Protocol):
    """Shows how far a load, a download or a prefill has come."""

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Show the fields of a `progress` event.

        Args:
            stage: The part of the work.
            current: The units that are done.
            total: All units, or None if the number is unknown.
            unit: The name of the unit.
        """
        ...

    def close(self) -> None:
        """Remove what is drawn."""
        ...


class ProgressArea(Protocol):
    """The last lines of a terminal, which show progress. Other lines appear above them."""

    def begin(self, label: str = "") -> StageProgress:
        """Return the display of one more load, download or prefill.

        Args:
            label: What it is, if there may be several.
        """
        ...

    def print_above(self, text: str) -> None:
        """Write whole lines above what is drawn."""
        ...

    def close(self) -> None:
        """Remove all that is drawn."""
        ...


@contextlib.contextmanager
def show_progress() -> Generator[StageProgress]:
    """Yield the display of progress that suits stderr. It is cleared afterwards."""
    progress = make_progress()
    try:
        yield progress
    finally:
        progress.close()


def make_progress() -> StageProgress:
    """Return the display of one load, download or prefill that suits stderr. Close it afterwards."""
    area = make_progress_area(sys.stderr)
    return area.begin() if area else PlainLines()


def make_progress_area(stream: TextIO) -> ProgressArea | None:
    """Return the display of progress for a terminal; None if the stream is not one that can draw."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    if find_spec("rich") is None:
        return OneLine(stream)
    from .progress_bars import Bars

    return Bars(stream)


class PlainLines:
    """Writes a line at each tenth of a download. The other stages are short, and write nothing."""

    def __init__(self) -> None:
        self._last = -1

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Write a line if the download has come another tenth; see `StageProgress.show`."""
        if stage != "download" or not total:
            return
        tenth = current * _STEPS // total
        if tenth > self._last:
            self._last = tenth
            print(f"lmwire: {format_progress(stage, current, total, unit)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the lines as they are."""


class OneLine:
    """Overwrites the last line of a terminal, where rich is not installed.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""

    def begin(self, label: str = "") -> StageProgress:
        """Return the display of one more load. The line has the last one that has come further."""
        return _OneLoad(self.draw, label)

    def print_above(self, text: str) -> None:
        """Write whole lines above the line; see `ProgressArea.print_above`."""
        self._stream.write(f"{_CLEAR_LINE}{text}{self._line}")
        self._stream.flush()

    def close(self) -> None:
        """Clear the line."""
        self.draw("")

    def draw(self, line: str) -> None:
        """Overwrite the line."""
        self._line = line
        self._stream.write(f"{_CLEAR_LINE}{line}")
        self._stream.flush()


class _OneLoad:
    """A load whose progress is shown on one line."""

    def __init__(self, draw: Callable[[str], None], label: str) -> None:
        self._draw, self._label = draw, label

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Overwrite the line; see `StageProgress.show`."""
        self._draw(dim(labelled(self._label, format_progress(stage, current, total, unit))))

    def close(self) -> None:
        """Clear the line."""
        self._draw("")


def labelled(label: str, text: str) -> str:
    """Return a text after the label of its load; without a label, the text alone."""
    return f"{one_line(label)}: {text}" if label else text


def format_progress(stage: str, current: int, total: int | None, unit: str) -> str:
    """Return the fields of a `progress` event as a line for a person to read; `show` has the arguments."""
    words = stage_words(stage)
    if unit == "bytes":
        return f"{words}: {current / 1e6:,.0f} MB" + (f" of {total / 1e6:,.0f} MB" if total else "")
    return f"{words}: {current} of {total} {one_line(unit)}" if total else words


def stage_words(stage: str) -> str:
    """Return the words for a stage. A worker of a later version can send others."""
    return STAGE_WORDS.get(stage) or one_line(stage)
