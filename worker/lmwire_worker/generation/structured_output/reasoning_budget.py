"""Watches an answer for its thought, and closes it when its budget is spent."""

import codecs
from collections.abc import Callable, Sequence


class Thought:
    """Of one answer.

    Args:
        start: The marker that opens a thought.
        end: The marker that closes it.
        closing: The tokens of `end`.
        budget: Tokens of thought, all of the answer's together, after which it is closed.
        token_bytes: A token's own bytes.
        open: The answer starts inside a thought.
    """

    def __init__(
        self,
        start: str,
        end: str,
        closing: Sequence[int],
        budget: int,
        token_bytes: Callable[[int], bytes],
        *,
        open: bool,
    ) -> None:
        self._recipe = (start, end, closing, budget, token_bytes, open)
        self._markers = {False: start, True: end}
        self._longest = max(len(start), len(end))
        self._closing = closing
        self._left = budget
        self._token_bytes = token_bytes
        self._open = open
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""
        self._matched = 0

    def fork(self) -> "Thought":
        start, end, closing, budget, token_bytes, open = self._recipe
        return Thought(start, end, closing, budget, token_bytes, open=open)

    def push(self, token: int) -> None:
        """Takes the answer's next token."""
        if self._open:
            self._left -= 1
            self._matched = self._matched + 1 if token == self._next else int(token == self._closing[0])
        self._tail += self._decoder.decode(self._token_bytes(token))
        while (marker := self._markers[self._open]) in self._tail:
            self._left += self._matched  # the marker is no thought
            self._tail = self._tail.partition(marker)[2]
            self._open = not self._open
            self._matched = 0
        self._tail = self._tail[-self._longest :]

    @property
    def forced(self) -> int | None:
        """The only token that may come next, if the thought must be closed. A character in work is finished first."""
        in_character = self._decoder.getstate()[0]
        return self._next if self._open and self._left <= 0 and not in_character else None

    @property
    def _next(self) -> int | None:
        """The closing marker's next token, as far as the newest tokens are its beginning."""
        return self._closing[self._matched] if self._matched < len(self._closing) else None
