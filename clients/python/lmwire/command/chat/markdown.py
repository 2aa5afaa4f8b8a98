"""Markdown on a terminal, formatted while it comes.

What is finished is printed for good and scrolls away as any output does. Only the last block (a paragraph, a list, a
code block), which the next piece may still change, is drawn again and again.
"""

from collections.abc import Iterable
from typing import Self

from markdown_it import MarkdownIt
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner

from .display import Plain, printable

_parse = MarkdownIt().enable("table").parse


class Markdown(Plain):
    """One answer in Markdown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._block = ""
        self._printed = False
        self._spinner = Spinner("dots", style="dim")
        self._live = Live(console=console, get_renderable=self._unfinished, refresh_per_second=12, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def show(self, text: str) -> None:
        text = printable(text)
        self._block += text
        if "\n" in text:
            end = finished(self._block)
            self._print(self._block[:end])
            self._block = self._block[end:]

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._print(self._block)

    def _print(self, text: str) -> None:
        if text.strip():
            if self._printed:
                self._console.print()
            self._console.print(markdown.Markdown(text))
            self._printed = True

    def _unfinished(self) -> RenderableType:
        return _Tail(self._block) if self._block.strip() else self._spinner


class _Tail:
    """The last lines of a block, as many as fit on the screen: what is above cannot be drawn again."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        lines = console.render_lines(markdown.Markdown(self._text), options, pad=False)
        for line in lines[-max(1, console.height - 2) :]:
            yield from line
            yield Segment.line()


def finished(text: str) -> int:
    """How much of `text` no later piece can change: the length of all blocks but the last.

    Only whole lines count, since half a line may yet turn out to continue the list before it.
    """
    *lines, _ = text.split("\n")
    starts = [token.map[0] for token in _parse("\n".join(lines)) if token.level == 0 and token.map]
    return sum(len(line) + 1 for line in lines[: starts[-1]]) if starts else 0
