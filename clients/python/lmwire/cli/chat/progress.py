"""Progress of a load, as one line on stderr that is overwritten, if stderr is a terminal."""

import sys
from typing import Final

from .terminal_text import dim

_WORDS: Final = {
    "resolve": "Looking for the model",
    "download": "Downloading",
    "read": "Reading the weights",
    "warm_up": "Warming up",
}


class LoadProgress:
    """Shows the line while its context is entered, and clears it afterwards."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> "LoadProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Show the fields of a `progress` event.

        Args:
            stage: The part of the load.
            current: The units that are done.
            total: All units, or None if the number is unknown.
            unit: The name of the unit.
        """
        self._write(dim(format_progress(stage, current, total, unit)))

    def _write(self, line: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def format_progress(stage: str, current: int, total: int | None, unit: str) -> str:
    """Return the fields of a `progress` event as a line for a person to read; `show` has the arguments."""
    words = _WORDS.get(stage, stage)
    if unit == "bytes":
        return f"{words}: {current / 1e6:,.0f} MB" + (f" of {total / 1e6:,.0f} MB" if total else "")
    return f"{words}: {current} of {total} {unit}" if total else words
