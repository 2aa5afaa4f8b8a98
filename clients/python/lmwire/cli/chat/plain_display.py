"""Displays without formatting: for a pipe, and for a terminal that cannot or should not format Markdown."""

import sys
from contextlib import AbstractContextManager

import lmwire
from lmwire_protocol.events import Progress

from ..progress import StageProgress, make_progress
from ..terminal_text import NewlineTrimmer, dim, format_call, strip_controls


class PlainDisplay(AbstractContextManager["PlainDisplay"]):
    """Writes an answer's text to stdout, without its reasoning and the blank lines before it.

    Enter it before the first delta, and exit it after the last.
    """

    def __init__(self) -> None:
        self._open_line = False
        self._before_text = True
        self._has_progress = False
        self._bar: StageProgress | None = None

    def show(self, text: str) -> None:
        """Show the next part of the answer."""
        if self._before_text:
            text = text.lstrip("\r\n")
            if not text:
                return
            self._before_text = False
            self._end_reasoning()
        self._write(text)

    def show_reasoning(self, text: str) -> None:
        """Show the next part of the reasoning before the answer."""
        self._before_text = True
        self._end_prefill()

    def show_progress(self, event: Progress) -> None:
        """Show on stderr how much of a long prompt has been read. A prompt with a single event is short."""
        if self._has_progress:
            self._bar = self._bar or make_progress()
            self._bar.show(event.stage, event.current, event.total, event.unit)
        self._has_progress = True

    def show_call(self, call: lmwire.ToolCall) -> None:
        """Show a tool call on a line of its own."""
        import json  # an answer without calls needs it not

        self._end_line()
        self._write(json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False) + "\n")

    def __exit__(self, *_: object) -> None:
        self._end_prefill()
        self._end_line()

    def _end_prefill(self) -> None:
        if self._bar:
            self._bar.close()
            self._bar = None

    def _end_reasoning(self) -> None:
        """Separate the reasoning from the answer."""

    def _end_line(self) -> None:
        if self._open_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self._end_prefill()
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
        self._before_text = True
        if trimmed := self._trimmer.add(strip_controls(text)):
            self._write(dim(trimmed))

    def show_call(self, call: lmwire.ToolCall) -> None:
        """Show a tool call, dimmed, on a line of its own."""
        self._end_line()
        self._write(dim(format_call(call)) + "\n")

    def _end_reasoning(self) -> None:
        if self._open_line:
            self._write("\n\n")


def choose_display(*, formatted: bool) -> PlainDisplay:
    """Return the display for one answer on stdout.

    Args:
        formatted: Whether to format Markdown. That needs rich and a terminal; without them the text stays plain.
    """
    if not sys.stdout.isatty():
        return PlainDisplay()
    if not formatted:
        return TerminalDisplay()
    try:
        import rich
    except ImportError:
        return TerminalDisplay()
    if rich.get_console().is_dumb_terminal:
        return TerminalDisplay()
    from .markdown_display import MarkdownDisplay

    return MarkdownDisplay(rich.get_console())
