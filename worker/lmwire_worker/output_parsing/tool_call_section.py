"""A section of tool calls: the text between the markers of calls."""

from collections.abc import Iterable

from msgspec.structs import replace

from ..tool_parsers import ToolCallFragment, ToolCallParser


class ToolCallSection:
    """Parses one section, and numbers its calls within the whole answer.

    Args:
        parser: The parser of the section's text.
        start_markup: The markup that started the section.
        first: The index of the section's first call.
        has_markup: The markup is part of the section's text.
    """

    def __init__(self, parser: ToolCallParser, start_markup: str, first: int, *, has_markup: bool = False) -> None:
        self.start_markup = start_markup
        self.complete_calls = 0
        """Number of complete calls so far."""
        self._parser = parser
        self._first = first
        self._markup_in_text = start_markup if has_markup else ""
        self.has_retracted = False
        """True after a call that was reported to the host proved invalid."""
        self._numbers: dict[int, int] = {}
        self.first_fragments = self.push(self._markup_in_text) if has_markup else []
        """The fragments of calls in the markup."""

    @property
    def is_abandoned(self) -> bool:
        """Return whether the section cannot contain a call any more. `end` then returns its text."""
        return self._parser.is_abandoned

    def push(self, text: str) -> list[ToolCallFragment]:
        """Add text, and return the fragments of calls that became certain."""
        return self._number(self._parser.push(text))

    def end(self, closed: bool, *, marked: bool) -> tuple[list[ToolCallFragment], str]:
        """Return the last fragments, and the text outside complete calls; see `ToolCallParser.end`.

        The text lacks the section's markup.
        """
        pieces, text = self._parser.end(closed, marked=marked)
        numbered = self._number(pieces)
        if self._markup_in_text and self.complete_calls:
            self.start_markup = ""
        return numbered, text.removeprefix(self._markup_in_text) if not self.complete_calls else text

    def _number(self, pieces: Iterable[ToolCallFragment]) -> list[ToolCallFragment]:
        numbered = []
        for piece in pieces:
            if piece.complete is False and piece.index not in self._numbers:
                continue  # the host has no fragment of it
            index = self._numbers.setdefault(piece.index, self._first + len(self._numbers))
            numbered.append(replace(piece, index=index))
            self.complete_calls += piece.complete is True
            self.has_retracted |= piece.complete is False
        return numbered


class UnreadSection:
    """A parser of a section whose calls are text, because the request has no tools."""

    is_abandoned = False

    def __init__(self) -> None:
        self._texts: list[str] = []

    def push(self, text: str) -> list[ToolCallFragment]:
        """Add text; see `ToolCallParser.push`."""
        self._texts.append(text)
        return []

    def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list[ToolCallFragment], str]:
        """End the section; see `ToolCallParser.end`."""
        return [], "".join(self._texts)
