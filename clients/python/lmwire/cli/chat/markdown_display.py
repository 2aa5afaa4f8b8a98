"""Markdown on a terminal, formatted while it arrives, after the reasoning, dimmed.

Finished blocks are printed once and scroll away like any output. Only the last block (a paragraph, a list, a code
block) is drawn again and again, because the next delta may change it.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Self

from markdown_it import MarkdownIt
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

import lmwire
from lmwire_protocol.events import Progress

from ..progress import format_progress
from ..terminal_text import NewlineTrimmer, format_call, strip_controls
from .plain_display import PlainDisplay

_parse = MarkdownIt().enable("table").parse


class MarkdownDisplay(PlainDisplay):
    """Writes one answer as formatted Markdown, after its reasoning, dimmed.

    Args:
        console: The terminal to draw on.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._trimmer = NewlineTrimmer()
        self._line = ""
        self._block = ""
        self._started = False
        self._spinner = Spinner("dots", style="dim")
        self._live = Live(console=console, get_renderable=self._unfinished, refresh_per_second=12, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def show_reasoning(self, text: str) -> None:
        """Show the next part of the reasoning, dimmed."""
        self._before_text = True
        *finished, self._line = (self._line + self._trimmer.add(strip_controls(text))).split("\n")
        for line in finished:
            self._print_dimmed(line)

    def show_progress(self, event: Progress) -> None:
        """Show how much of a long prompt has been read, beside the spinner."""
        if event.total and event.total > event.current:
            line = format_progress(event.stage, event.current, event.total, event.unit)
            self._spinner.update(text=Text(line, style="dim"))

    def show_call(self, call: lmwire.ToolCall) -> None:
        """Show a tool call, dimmed, on a line of its own."""
        self._finish()
        self._print_dimmed(format_call(call))

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._finish()

    def _write(self, text: str) -> None:
        text = strip_controls(text)
        self._block += text
        if "\n" in text:
            *finished, self._block = split_blocks(self._block)
            self._print(finished)

    def _end_reasoning(self) -> None:
        if self._line:
            self._print_dimmed(self._line)
        self._line = ""

    def _finish(self) -> None:
        """Print the unfinished line and block for good."""
        self._end_reasoning()
        self._print(split_blocks(self._block + "\n"))
        self._block = ""

    def _print_dimmed(self, line: str) -> None:
        self._console.print(Text(line, style="dim"))
        self._started = True

    def _print(self, finished: list[str]) -> None:
        for block in finished:
            if block.strip():
                self._console.print(_Block(markdown.Markdown(block), gap=self._started), end="")
                self._started = True

    def _unfinished(self) -> RenderableType:
        # Lines above the screen cannot be drawn again.
        last = max(1, self._console.height - 2)
        if self._line:
            return _Block(Text(self._line, style="dim"), gap=False, last=last)
        if self._block.strip():
            return _Block(markdown.Markdown(self._block), gap=self._started, last=last)
        return self._spinner


class _Block:
    """A block, or its last lines, without the empty lines that rich puts around some kinds of blocks.

    Args:
        content: The block as rich renders it.
        gap: Whether to start with an empty line.
        last: Maximum number of lines, counted from the end. 0 means all.
    """

    def __init__(self, content: RenderableType, *, gap: bool, last: int = 0) -> None:
        self._content = content
        self._gap = gap
        self._last = last

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        lines = console.render_lines(self._content, options, pad=False)
        while lines and _is_empty(lines[0]):
            del lines[0]
        while lines and _is_empty(lines[-1]):
            del lines[-1]
        if self._gap:
            lines.insert(0, [])
        for line in lines[-self._last :]:
            # Markdown makes characters of entities such as `&#x202e;`.
            yield from (segment._replace(text=strip_controls(segment.text)) for segment in line)
            yield Segment.line()


def _is_empty(line: list[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line)


def split_blocks(text: str) -> list[str]:
    """Split the text into its Markdown blocks. Text that follows can change only the last one.

    Only whole lines count, since half a line may turn out to continue the list before it.
    """
    *lines, rest = [line + "\n" for line in text.split("\n")]
    starts = [token.map[0] for token in _parse("".join(lines)) if token.level == 0 and token.map]
    cuts = [0, *starts[1:], len(lines)]
    *whole, last = ["".join(lines[start:end]) for start, end in pairwise(cuts)]
    return [*whole, last + rest[:-1]]
