"""The reasoning budget: counts an answer's reasoning tokens, and closes the reasoning when they are spent."""

import codecs
from collections.abc import Callable, Sequence


class ReasoningBudget:
    """The reasoning budget of one answer.

    Args:
        start: The marker that opens reasoning.
        end: The marker that closes it.
        closing: The tokens of `end`.
        budget: Maximum number of reasoning tokens in the answer.
        token_bytes: Returns a token's bytes.
        open: The answer starts inside reasoning.
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
        self._arguments = (start, end, closing, budget, token_bytes, open)
        self._markers = {False: start, True: end}
        self._longest = max(len(start), len(end))
        self._closing = closing
        self._remaining = budget
        self._token_bytes = token_bytes
        self._open = open
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""
        self._matched = 0

    def fork(self) -> "ReasoningBudget":
        """Return an unused budget with the same arguments."""
        start, end, closing, budget, token_bytes, open = self._arguments
        return ReasoningBudget(start, end, closing, budget, token_bytes, open=open)

    def push(self, token: int) -> None:
        """Add the answer's next token."""
        if self._open:
            self._remaining -= 1
            self._matched = self._matched + 1 if token == self._next else int(token == self._closing[0])
        self._tail += self._decoder.decode(self._token_bytes(token))
        while (marker := self._markers[self._open]) in self._tail:
            self._remaining += self._matched  # the marker does not count
            self._tail = self._tail.partition(marker)[2]
            self._open = not self._open
            self._matched = 0
        self._tail = self._tail[-self._longest :]

    @property
    def forced(self) -> int | None:
        """The only allowed next token if the reasoning must be closed, else None. A character is finished first."""
        in_character = self._decoder.getstate()[0]
        return self._next if self._open and self._remaining <= 0 and not in_character else None

    @property
    def _next(self) -> int | None:
        """The closing marker's next token, after the newest tokens that are its beginning."""
        return self._closing[self._matched] if self._matched < len(self._closing) else None
