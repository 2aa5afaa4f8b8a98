"""Progress on stderr: bars on a terminal, and a few plain lines for a download otherwise."""

import contextlib
import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from .terminal_text import dim

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_WORDS: Final = {
    "resolve": "Looking for the model",
    "download": "Downloading",
    "read": "Reading the weights",
    "warm_up": "Warming up",
    "prefill": "Reading the prompt",
}
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


@contextlib.contextmanager
def show_progress() -> Generator[StageProgress]:
    """Yield the display of progress that suits stderr. It is cleared afterwards."""
    progress = _choose()
    try:
        yield progress
    finally:
        progress.close()


def _choose() -> StageProgress:
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return PlainLines()
    return Bars() if find_spec("rich") else OneLine()


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
    """Overwrites one line of a terminal, where rich is not installed."""

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Overwrite the line; see `StageProgress.show`."""
        self._write(dim(format_progress(stage, current, total, unit)))

    def close(self) -> None:
        """Clear the line."""
        self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


class Bars:
    """Draws the bar of the present stage with rich. Bytes have a speed and the time that remains."""

    def __init__(self) -> None:
        self._stage: str | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Draw the bar; see `StageProgress.show`."""
        if stage != self._stage or self._progress is None or self._task is None:
            self.close()
            self._stage, self._progress = stage, _make_bars(unit)
            self._task = self._progress.add_task(_WORDS.get(stage, stage), total=total)
            self._progress.start()
        self._progress.update(self._task, completed=current, total=total)

    def close(self) -> None:
        """Remove the bar."""
        if self._progress:
            self._progress.stop()
            self._progress = None


def _make_bars(unit: str) -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    of_bytes = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    of_unit = of_bytes if unit == "bytes" else (MofNCompleteColumn(), TextColumn(unit))
    columns = (TextColumn("{task.description}", style="dim"), BarColumn(), *of_unit)
    return Progress(*columns, console=Console(stderr=True), transient=True)


def format_progress(stage: str, current: int, total: int | None, unit: str) -> str:
    """Return the fields of a `progress` event as a line for a person to read; `show` has the arguments."""
    words = _WORDS.get(stage, stage)
    if unit == "bytes":
        return f"{words}: {current / 1e6:,.0f} MB" + (f" of {total / 1e6:,.0f} MB" if total else "")
    return f"{words}: {current} of {total} {unit}" if total else words
