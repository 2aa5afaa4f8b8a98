"""The constraint on one answer, token by token: its grammar and its reasoning budget. Imports no grammar."""

import codecs
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class ReasoningBudget:
    """The reasoning budget of one answer.

    Args:
        start: The marker that opens reasoning.
        end: The marker that closes it.
        call_starts: The start markers of calls that close it, too.
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
        call_starts: Sequence[str] = (),
    ) -> None:
        self._arguments = (start, end, closing, budget, token_bytes, open, call_starts)
        self._markers = {False: (start,), True: (end, *call_starts)}
        self._end = end
        self._longest = max(map(len, (start, end, *call_starts)))
        self._closing = closing
        self._remaining = budget
        self._token_bytes = token_bytes
        self._open = open
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""
        self._matched = 0

    def fork(self) -> "ReasoningBudget":
        """Return an unused budget with the same arguments."""
        start, end, closing, budget, token_bytes, open, call_starts = self._arguments
        return ReasoningBudget(start, end, closing, budget, token_bytes, open=open, call_starts=call_starts)

    def push(self, token: int) -> None:
        """Add the answer's next token."""
        if self._open:
            self._remaining -= 1
            self._matched = self._matched + 1 if token == self._next else int(token == self._closing[0])
        self._tail += self._decoder.decode(self._token_bytes(token))
        while found := [marker for marker in self._markers[self._open] if marker in self._tail]:
            marker = min(found, key=self._tail.index)
            if marker == self._end:
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


class Constraint:
    """Constrains the tokens of one choice.

    Args:
        matcher: The grammar's `llguidance.LLMatcher` in its initial state, or None.
        reasoning_budget: The budget of reasoning tokens, or None.
        mask_words: Length of a bit mask, in int32.
        plain: The matcher of the same answers without reasoning, if nobody asked for it; else None. Where it forbids a
            token that the grammar allows, the answer may have that only if the model prefers it to all others. A mask
            leaves few tokens, and would lead a model into reasoning that it would not write.
        start_tokens: Maximum number of tokens after which `plain` no longer matters.
        drops_space: White space before the content is not part of it.
    """

    def __init__(
        self,
        matcher: Any,
        reasoning_budget: ReasoningBudget | None,
        mask_words: int,
        *,
        plain: Any = None,
        start_tokens: int = 0,
        drops_space: bool = False,
    ) -> None:
        self.matcher = matcher
        self.mask_words = mask_words
        self.drops_space = drops_space
        self.plain = plain
        self._start_tokens = start_tokens
        self.error: str | None = None
        """Reason why the constraint failed, as a sentence. A failed constraint allows every token."""
        self._reasoning_budget = reasoning_budget
        self._started = False
        self._is_ahead = False
        """True if the token that `push` gets next was added before."""

    def fork(self, answer: Sequence[int] = ()) -> "Constraint":
        """Return an independent copy of an unused constraint, for another choice.

        Args:
            answer: The tokens of a choice that resumes. The last one is the newest token of the next step.
        """
        matcher = None if self.matcher is None else self.matcher.deep_copy()
        copy = Constraint(
            matcher,
            None if self._reasoning_budget is None else self._reasoning_budget.fork(),
            self.mask_words,
            plain=None if self.plain is None else self.plain.deep_copy(),
            start_tokens=self._start_tokens,
            drops_space=self.drops_space,
        )
        copy._started = bool(answer)
        for token in answer[:-1]:
            copy.push(token)
        return copy

    @property
    def binds(self) -> bool:
        """Return whether the constraint may forbid a token now."""
        return self.matcher is not None or self._forced is not None

    def push(self, token: int) -> None:
        """Add the row's newest token. The first one is the last token of the prompt."""
        if not self._started:
            self._started = True
            return
        if self._is_ahead:
            self._is_ahead = False
            return
        self._start_tokens -= 1
        if self.plain is not None and (self._start_tokens <= 0 or not self.plain.try_consume_tokens([token])):
            self.plain = None  # the answer has begun, with reasoning or without
        if self._reasoning_budget is not None:
            self._reasoning_budget.push(token)
        if self.matcher is not None and not self.matcher.is_stopped():
            self.matcher.consume_token(token)  # complete_mask checks for errors

    def forced_tokens(self, token: int, limit: int) -> list[int]:
        """Add the row's newest token, and return the only tokens that may follow it.

        The next call of `push` gets the newest token, or the last one of those that `skip` adds.

        Args:
            token: The newest token, of the answer.
            limit: Maximum number of tokens that follow.
        """
        self.push(token)
        self._is_ahead = True
        if self.matcher is None or self.plain is not None or self.matcher.is_stopped() or self._forced is not None:
            return []
        return self.matcher.compute_ff_tokens()[: max(limit, 0)]

    def skip(self, forced: Sequence[int]) -> list[int]:
        """Add forced tokens without masks for them, and return those that were added.

        Args:
            forced: The first of those that `forced_tokens` has just returned.
        """
        added: list[int] = []
        for token in forced:
            if self._forced is not None:  # the budget of reasoning is spent
                break
            self._is_ahead = False
            self.push(token)
            added.append(token)
        self._is_ahead = True
        return added

    def complete_mask(self, bits: "np.ndarray") -> None:
        """Complete the row's bit mask [mask_words], int32, after the matcher filled it."""
        if self.matcher is not None and self.matcher.is_error():
            reason, *_ = self.matcher.get_error().splitlines()  # the rest is the state of a parser
            self._fail(f"the answer could not be held to its grammar: {reason}")
        forced = self._forced
        if forced is not None:
            bits[:] = 0
            bits.view("uint32")[forced // 32] = 1 << forced % 32
        elif self.matcher is None:
            bits[:] = -1
        elif not bits.any():
            self._fail("the answer's grammar allows none of this model's tokens")
            bits[:] = -1

    @property
    def _forced(self) -> int | None:
        return None if self._reasoning_budget is None else self._reasoning_budget.forced

    def _fail(self, problem: str) -> None:
        self.error = problem
        self.matcher = self.plain = self._reasoning_budget = None
