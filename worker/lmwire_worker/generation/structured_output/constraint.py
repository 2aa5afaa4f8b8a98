"""What one answer is held to, token by token."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .reasoning_budget import Thought


class Constraint:
    """Of one choice of a request.

    Args:
        matcher: The grammar's `llguidance.LLMatcher`, at its start, or None.
        thought: What keeps the thought's budget, or None.
        words: The length of a bit mask, in int32.
    """

    def __init__(self, matcher: Any, thought: Thought | None, words: int) -> None:
        self.matcher = matcher
        self.words = words
        self.error: str | None = None
        """Why it failed, in a sentence. From then on it forbids nothing."""
        self._thought = thought
        self._started = False

    def fork(self, answer: Sequence[int] = ()) -> "Constraint":
        """An independent copy, for another choice, of a constraint that has not taken a token yet.

        Args:
            answer: The tokens so far of a choice that starts again. The last one is the newest at the next step.
        """
        matcher = None if self.matcher is None else self.matcher.deep_copy()
        copy = Constraint(matcher, None if self._thought is None else self._thought.fork(), self.words)
        copy._started = bool(answer)
        for token in answer[:-1]:
            copy.push(token)
        return copy

    @property
    def binds(self) -> bool:
        """Whether it may forbid something now."""
        return self.matcher is not None or self._forced is not None

    def push(self, token: int) -> None:
        """Takes the row's newest token, the first being the prompt's last."""
        if not self._started:
            self._started = True
            return
        if self._thought is not None:
            self._thought.push(token)
        if self.matcher is not None and not self.matcher.is_stopped():
            self.matcher.consume_token(token)  # one that fails says so when it is asked

    def restrict(self, bits: np.ndarray) -> None:
        """Completes the row's bit mask [words], int32, which the matcher has filled."""
        if self.matcher is not None and self.matcher.is_error():
            reason, *_ = self.matcher.get_error().splitlines()  # the rest is the state of a parser
            self._fail(f"the answer could not be held to its grammar: {reason}")
        forced = self._forced
        if forced is not None:
            bits[:] = 0
            bits.view(np.uint32)[forced // 32] = 1 << forced % 32
        elif self.matcher is None:
            bits[:] = -1
        elif not bits.any():
            self._fail("the answer's grammar allows none of this model's tokens")
            bits[:] = -1

    @property
    def _forced(self) -> int | None:
        return None if self._thought is None else self._thought.forced

    def _fail(self, problem: str) -> None:
        self.error = problem
        self.matcher = self._thought = None
