"""Markdown on a terminal, formatted while it comes, and before it the thought, dimmed.

What is finished is printed for good and scrolls away as any output does. Only the last block (a paragraph, a list, a
code block), which the next piece may still change, is drawn again and again.
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

from .display import Plain, Trimmed, called, printable

_parse = MarkdownIt().enable("table").parse


class Markdown(Plain):
    """One answer in Markdown, the thought before it dimmed."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._thought = Trimmed()
        self._line = ""
        self._block = ""
        self._begun = False
        self._spinner = Spinner("dots", style="dim")
        self._live = Live(console=console, get_renderable=self._unfinished, refresh_per_second=12, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def think(self, text: str) -> None:
        self._thinking = True
        *finished, self._line = (self._line + self._thought.add(printable(text))).split("\n")
        for line in finished:
            self._dimmed(line)

    def call(self, call: lmwire.ToolCall) -> None:
        self._finish()
        self._dimmed(called(call))

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._finish()

    def _write(self, text: str) -> None:
        text = printable(text)
        self._block += text
        if "\n" in text:
            *finished, self._block = blocks(self._block)
            self._print(finished)

    def _end_thought(self) -> None:
        if self._line:
            self._dimmed(self._line)
        self._line = ""

    def _finish(self) -> None:
        """Prints for good what was unfinished."""
        self._end_thought()
        self._print(blocks(self._block + "\n"))
        self._block = ""

    def _dimmed(self, line: str) -> None:
        self._console.print(Text(line, style="dim"))
        self._begun = True

    def _print(self, finished: list[str]) -> None:
        for block in finished:
            if block.strip():
                self._console.print(_Block(markdown.Markdown(block), gap=self._begun), end="")
                self._begun = True

    def _unfinished(self) -> RenderableType:
        # What is above the screen could not be drawn again.
        last = max(1, self._console.height - 2)
        if self._line:
            return _Block(Text(self._line, style="dim"), gap=False, last=last)
        if self._block.strip():
            return _Block(markdown.Markdown(self._block), gap=self._begun, last=last)
        return self._spinner


class _Block:
    """One block, or its last lines, without the empty lines that rich puts around some kinds of blocks.

    Args:
        gap: begin with an empty line.
        last: lines at most.
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
            yield from line
            yield Segment.line()


def _is_empty(line: list[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line)


def blocks(text: str) -> list[str]:
    """Cuts `text` into its blocks; nothing that may follow changes any but the last.

    Only whole lines count, since half a line may yet turn out to continue the list before it.
    """
    *lines, rest = [line + "\n" for line in text.split("\n")]
    starts = [token.map[0] for token in _parse("".join(lines)) if token.level == 0 and token.map]
    cuts = [0, *starts[1:], len(lines)]
    *whole, last = ["".join(lines[start:end]) for start, end in pairwise(cuts)]
    return [*whole, last + rest[:-1]]
