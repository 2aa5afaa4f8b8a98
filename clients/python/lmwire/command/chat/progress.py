"""How far a load has come, on stderr: one line that is written over, and only on a terminal."""

import sys
from typing import Final

from .display import dim

_WORDS: Final = {
    "resolve": "Looking for the model",
    "download": "Downloading",
    "read": "Reading the weights",
    "warm_up": "Warming up",
}


class LoadProgress:
    """Entered before the load; the line is gone when it is left."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> "LoadProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def show(self, stage: str, current: int, total: int | None, unit: str) -> None:
        """Shows a `progress` event's fields."""
        self._write(dim(progress_line(stage, current, total, unit)))

    def _write(self, line: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()


def progress_line(stage: str, current: int, total: int | None, unit: str) -> str:
    """A `progress` event as a person reads it."""
    words = _WORDS.get(stage, stage)
    if unit == "bytes":
        return f"{words}: {current / 1e6:,.0f} MB" + (f" of {total / 1e6:,.0f} MB" if total else "")
    return f"{words}: {current} of {total} {unit}" if total else words
