"""Bars of loads, downloads and prefills on a terminal, drawn by rich."""

from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from lmwire_protocol.printable import one_line

from .progress import StageProgress, labelled, stage_words


class Bars:
    """Draws a bar for each load at the end of a terminal. Nothing is drawn while there is none.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._progress: Progress | None = None

    def begin(self, label: str = "") -> StageProgress:
        """Return the bar of one more load; see `ProgressArea.begin`."""
        return _Bar(self, label)

    def print_above(self, text: str) -> None:
        """Write whole lines above the bars; see `ProgressArea.print_above`."""
        if self._progress:
            self._progress.console.out(text, end="", highlight=False)
        else:
            self._stream.write(text)
            self._stream.flush()

    def close(self) -> None:
        """Remove the bars."""
        if self._progress:
            self._progress.stop()
            self._progress = None

    def add(self, words: str, current: int, total: int | None, unit: str, instead_of: TaskID | None) -> TaskID:
        """Draw one more bar, or another one instead of the bar of the last stage."""
        if self._progress is None:
            columns = (TextColumn("{task.description}", style="dim", markup=False), BarColumn(), _AmountColumn())
            self._progress = Progress(*columns, console=Console(file=self._stream), transient=True)
            self._progress.start()
        if instead_of is not None:
            self._progress.remove_task(instead_of)
        return self._progress.add_task(words, completed=current, total=total, unit=one_line(unit))

    def update(self, bar: TaskID, current: int, total: int | None) -> None:
        """Draw how far a load has come."""
        if self._progress:
            self._progress.update(bar, completed=current, total=total)

    def remove(self, bar: TaskID) -> None:
        """Remove a bar."""
        if self._progress and len(self._progress.tasks) > 1:
            self._progress.remove_task(bar)
            self._progress.refresh()
        else:
            self.close()


class _Bar:
    """The bar of the present stage of a load."""

    def __init__(self, bars: Bars, label: str) -> None:
        self._bars, self._label = bars, label
        self._stage: str | None = None
        self._task: TaskID | None = None

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Draw the bar; see `StageProgress.show`."""
        if self._task is None or stage != self._stage:
            words = labelled(self._label, stage_words(stage))
            self._stage, self._task = stage, self._bars.add(words, current, total, unit, self._task)
        self._bars.update(self._task, current, total)

    def close(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._bars.remove(self._task)
            self._task = None


class _AmountColumn(ProgressColumn):
    """The amount that is done. Bytes have a speed and the time that remains."""

    def __init__(self) -> None:
        super().__init__()
        self._of_bytes = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self._of_steps = (MofNCompleteColumn(), TextColumn("{task.fields[unit]}", markup=False))

    def render(self, task: Task) -> Text:
        """See `ProgressColumn.render`."""
        columns = self._of_bytes if task.fields["unit"] == "bytes" else self._of_steps
        return Text(" ").join(column.render(task) for column in columns)
