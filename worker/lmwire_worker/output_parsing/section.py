"""A section of calls while it is read."""

from collections.abc import Iterable
from dataclasses import replace

from ..tool_parsers import CallReader, CallText


class Section:
    """Reads one section, and numbers its calls over the whole answer.

    Args:
        reader: What reads the section's text.
        opened: The markup that it began with.
        first: The number of its first call.
    """

    def __init__(self, reader: CallReader, opened: str, first: int) -> None:
        self.opened = opened
        self.whole = 0
        """Whole calls so far."""
        self._reader = reader
        self._first = first
        self.taken_back = False
        """Whether the host was told of a call that is none."""
        self._numbers: dict[int, int] = {}

    @property
    def lost(self) -> bool:
        """Whether no call can come of it any more; `end` gives its text back."""
        return self._reader.lost

    def push(self, text: str) -> list[CallText]:
        """Takes the next text."""
        return self._number(self._reader.push(text))

    def end(self, closed: bool) -> tuple[list[CallText], str]:
        """The last pieces, and the text that is in no whole call; see `CallReader.end`."""
        pieces, text = self._reader.end(closed)
        return self._number(pieces), text

    def _number(self, pieces: Iterable[CallText]) -> list[CallText]:
        numbered = []
        for piece in pieces:
            if piece.complete is False and piece.index not in self._numbers:
                continue  # there is nothing to take back
            index = self._numbers.setdefault(piece.index, self._first + len(self._numbers))
            numbered.append(replace(piece, index=index))
            self.whole += piece.complete is True
            self.taken_back |= piece.complete is False
        return numbered
