"""Drafts without a second model: what followed the newest tokens where they were before, in the prompt or the answer.

An edit of a file, a quotation and most code repeat long parts. The idea:
https://github.com/apoorvumang/prompt-lookup-decoding
"""

from array import array
from collections.abc import Sequence
from typing import Final

from .decoding import MAX_FOLLOWING_TOKENS
from .pace import Pace

MATCHED_TOKENS: Final = (32, 8, 3)
"""Tokens that must be the same before a proposal. More of them come first: a few words often stand in several places of
a file, and the longest equal text tells which of these is being copied. `tools/edit_trace.py` shows what it gains."""
MAX_PROPOSALS: Final = MAX_FOLLOWING_TOKENS
MAX_TOKENS: Final = 65_536
"""Tokens that are searched, the newest ones: a search of more takes a part of a step that one can feel."""
_BYTES: Final = array("I").itemsize


class PromptLookup:
    """Proposes the next tokens of one row."""

    def __init__(self) -> None:
        self._text = bytearray()
        """The newest tokens that were searched before, as numbers of `_BYTES` bytes."""
        self._length = 0
        """Number of the row's tokens that were added to it."""
        self.pace = Pace(MAX_PROPOSALS)

    def propose(self, tokens: Sequence[int], limit: int) -> list[int]:
        """Return the tokens that may follow, none if no place is known from which they could come.

        Args:
            tokens: All tokens of the row so far. It only grows.
            limit: Maximum number of tokens to propose.
        """
        span = self.pace.next()
        if not span:
            return []
        self._text += array("I", tokens[max(self._length, len(tokens) - MAX_TOKENS) :]).tobytes()
        self._length = len(tokens)
        del self._text[: max(0, len(self._text) - MAX_TOKENS * _BYTES)]
        place = next(filter(None, map(self._find, MATCHED_TOKENS)), None)
        if place is None:
            return []
        count = min(span, limit)
        following = array("I", bytes(self._text[place : place + count * _BYTES])).tolist()
        return (following * count)[:count]  # a text that repeats itself to its end goes on in the same way

    def _find(self, count: int) -> int | None:
        """Return the place after the last earlier occurrence of the newest tokens, in bytes; None if there is none.

        Args:
            count: Number of those tokens.
        """
        newest = bytes(self._text[-count * _BYTES :])
        if len(newest) < count * _BYTES:
            return None
        end = len(self._text) - 1
        while (found := self._text.rfind(newest, 0, end)) >= 0:
            if found % _BYTES == 0:
                return found + len(newest)
            end = found + len(newest) - 1  # it begins inside of a token
        return None
