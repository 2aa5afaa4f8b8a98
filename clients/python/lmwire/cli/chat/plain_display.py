"""Displays without formatting: for a pipe, and for a terminal that cannot or should not format Markdown."""

import json
import sys
from contextlib import AbstractContextManager

import lmwire
from lmwire_protocol.events import Progress

from ..terminal_text import NewlineTrimmer, dim, format_call, strip_controls


class PlainDisplay(AbstractContextManager["PlainDisplay"]):
    """Writes an answer's text to stdout, without its reasoning.

    Enter it before the first delta, and exit it after the last.
    """

    def __init__(self) -> None:
        self._open_line = False
        self._reasoning = False

    def show(self, text: str) -> None:
        """Show the next part of the answer."""
        if self._reasoning:
            text = text.lstrip("\n")
            if not text:
                return
            self._reasoning = False
            self._end_reasoning()
        self._write(text)

    def show_reasoning(self, text: str) -> None:
        """Show the next part of the reasoning before the answer."""
        self._reasoning = True

    def show_progress(self, event: Progress) -> None:
        """Show how much of the prompt has been read, where that has a place."""

    def show_call(self, call: lmwire.ToolCall) -> None:
        """Show a tool call on a line of its own."""
        self._end_line()
        self._write(json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False) + "\n")

    def __exit__(self, *_: object) -> None:
        self._end_line()

    def _end_reasoning(self) -> None:
        """Separate the reasoning from the answer."""

    def _end_line(self) -> None:
        if self._open_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._open_line = not text.endswith("\n")


class TerminalDisplay(PlainDisplay):
    """Writes an answer to a terminal as plain text, after its reasoning, dimmed."""

    def __init__(self) -> None:
        super().__init__()
        self._trimmer = NewlineTrimmer()

    def show(self, text: str) -> None:
        """Show the next part of the answer."""
        super().show(strip_controls(text))

    def show_reasoning(self, text: str) -> None:
        """Show the next part of the reasoning, dimmed."""
        self._reasoning = True
        if trimmed := self._trimmer.add(strip_controls(text)):
            self._write(dim(trimmed))

    def show_call(self, call: lmwire.ToolCall) -> None:
        """Show a tool call, dimmed, on a line of its own."""
        self._end_line()
        self._write(dim(format_call(call)) + "\n")

    def _end_reasoning(self) -> None:
        if self._open_line:
            self._write("\n\n")
