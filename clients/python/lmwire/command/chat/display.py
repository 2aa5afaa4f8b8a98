"""How an answer appears: as plain text, or as Markdown that is formatted while it comes."""

import sys
from contextlib import AbstractContextManager
from typing import Final

# What a model writes is not trusted with the terminal: no escape sequences, nor other control characters.
_CONTROLS: Final = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


class Plain(AbstractContextManager["Plain"]):
    """An answer as it comes. Entered before the first piece, left after the last."""

    def __init__(self) -> None:
        self._open_line = False

    def show(self, text: str) -> None:
        """Shows one more piece."""
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._open_line = not text.endswith("\n")

    def __exit__(self, *_: object) -> None:
        """Ends the last line."""
        if self._open_line:
            self.show("\n")


class Terminal(Plain):
    """A plain answer on a terminal."""

    def show(self, text: str) -> None:
        super().show(printable(text))


def display() -> Plain:
    """What shows one answer on stdout: Markdown on a terminal, where rich is installed; plain text elsewhere."""
    if not sys.stdout.isatty():
        return Plain()
    try:
        import rich
    except ImportError:
        return Terminal()
    if rich.get_console().is_dumb_terminal:
        return Terminal()
    from .markdown import Markdown

    return Markdown(rich.get_console())


def printable(text: str) -> str:
    """`text` without what a terminal would obey."""
    return text.translate(_CONTROLS)


def dim(text: str) -> str:
    """`text` in the terminal's fainter style."""
    return f"\x1b[2m{text}\x1b[0m"
