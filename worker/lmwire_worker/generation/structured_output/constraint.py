"""The constraint on one answer, token by token, and whether a request needs one. Imports no grammar."""

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from lmwire_protocol import Chat, Generate, Tokenize

from .reasoning_budget import ReasoningBudget

if TYPE_CHECKING:
    import numpy as np


def is_forced(request: Generate | Chat) -> bool:
    """Return whether all answers of a request must have a format, or call tools."""
    must_call = isinstance(request, Chat) and bool(request.tools) and request.tool_choice not in ("auto", "none")
    return request.format is not None or must_call


def is_constrained(request: Generate | Chat | Tokenize) -> bool:
    """Return whether a grammar constrains a request's answers."""
    if isinstance(request, Tokenize):
        return False
    tools = request.tools if isinstance(request, Chat) and request.tool_choice != "none" else ()
    return is_forced(request) or any(tool.function.strict for tool in tools)


class Constraint:
    """Constrains the tokens of one choice.

    Args:
        matcher: The grammar's `llguidance.LLMatcher` in its initial state, or None.
        reasoning_budget: The budget of reasoning tokens, or None.
        mask_words: Length of a bit mask, in int32.
        reasoning_start: The token that opens reasoning which the request did not ask for; None without one.
        spaces: Tokens of white space that the answer may start with.
        drops_space: White space before the content is not part of it.
    """

    def __init__(
        self,
        matcher: Any,
        reasoning_budget: ReasoningBudget | None,
        mask_words: int,
        reasoning_start: int | None = None,
        *,
        spaces: Set[int] = frozenset(),
        drops_space: bool = False,
    ) -> None:
        self.matcher = matcher
        self.mask_words = mask_words
        self.drops_space = drops_space
        self._reasoning_start = reasoning_start
        self._spaces = spaces
        self._is_blank = True
        """True until the answer has more than white space."""
        self.error: str | None = None
        """Reason why the constraint failed, as a sentence. A failed constraint allows every token."""
        self._reasoning_budget = reasoning_budget
        self._started = False

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
            self._reasoning_start,
            spaces=self._spaces,
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

    @property
    def unasked_token(self) -> int | None:
        """The token that the answer may start with only if the model prefers it to all others; None if there is none.

        A mask leaves few tokens. Without this rule, a model that would not reason would be led into reasoning.
        """
        return self._reasoning_start if self._is_blank else None

    def push(self, token: int) -> None:
        """Add the row's newest token. The first one is the last token of the prompt."""
        if not self._started:
            self._started = True
            return
        self._is_blank = self._is_blank and token in self._spaces
        if self._reasoning_budget is not None:
            self._reasoning_budget.push(token)
        if self.matcher is not None and not self.matcher.is_stopped():
            self.matcher.consume_token(token)  # complete_mask checks for errors

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
        self.matcher = self._reasoning_budget = None
