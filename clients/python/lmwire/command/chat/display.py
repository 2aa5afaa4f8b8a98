"""How an answer appears: as plain text, or as Markdown that is formatted while it comes."""

import json
import sys
from contextlib import AbstractContextManager
from typing import Final

import lmwire

# What a model writes is not trusted with the terminal: no escape sequences, nor other control characters.
_CONTROLS: Final = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


class Plain(AbstractContextManager["Plain"]):
    """An answer as it comes, into a pipe: its text and no thoughts. Entered before the first piece, left at the end."""

    def __init__(self) -> None:
        self._open_line = False
        self._thinking = False

    def show(self, text: str) -> None:
        """Shows one more piece of the answer."""
        if self._thinking:
            text = text.lstrip("\n")
            if not text:
                return
            self._thinking = False
            self._end_thought()
        self._write(text)

    def think(self, text: str) -> None:
        """Shows one more piece of the thought before it."""
        self._thinking = True

    def call(self, call: lmwire.ToolCall) -> None:
        """Shows a tool call, on a line of its own."""
        self._end_line()
        self._write(json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False) + "\n")

    def __exit__(self, *_: object) -> None:
        self._end_line()

    def _end_thought(self) -> None:
        """Keeps the thought and the answer apart."""

    def _end_line(self) -> None:
        if self._open_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._open_line = not text.endswith("\n")


class Terminal(Plain):
    """A plain answer on a terminal, the thought before it dimmed."""

    def __init__(self) -> None:
        super().__init__()
        self._thought = Trimmed()

    def show(self, text: str) -> None:
        super().show(printable(text))

    def think(self, text: str) -> None:
        self._thinking = True
        if trimmed := self._thought.add(printable(text)):
            self._write(dim(trimmed))

    def call(self, call: lmwire.ToolCall) -> None:
        self._end_line()
        self._write(dim(called(call)) + "\n")

    def _end_thought(self) -> None:
        if self._open_line:
            self._write("\n\n")


class Trimmed:
    """Takes a text in pieces and leaves the empty lines at its ends out."""

    def __init__(self) -> None:
        self._begun = False
        self._newlines = ""

    def add(self, text: str) -> str:
        """What of the text so far is certain and was not returned before."""
        text = self._newlines + text
        kept = text.rstrip("\n")
        self._newlines = text[len(kept) :]
        if not self._begun:
            kept = kept.lstrip("\n")
            self._begun = bool(kept)
            self._newlines = self._newlines if kept else ""
        return kept


def display(*, formatted: bool) -> Plain:
    """What shows one answer on stdout.

    Args:
        formatted: as Markdown, on a terminal where rich is installed; plain text elsewhere.
    """
    if not sys.stdout.isatty():
        return Plain()
    if not formatted:
        return Terminal()
    try:
        import rich
    except ImportError:
        return Terminal()
    if rich.get_console().is_dumb_terminal:
        return Terminal()
    from .markdown import Markdown

    return Markdown(rich.get_console())


def called(call: lmwire.ToolCall) -> str:
    """A tool call as a person reads it."""
    return printable(f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})")


def printable(text: str) -> str:
    """`text` without what a terminal would obey."""
    return text.translate(_CONTROLS)


def dim(text: str) -> str:
    """`text` in the terminal's fainter style."""
    return f"\x1b[2m{text}\x1b[0m"
