"""How much of a prompt to process in one step.

A step cannot be interrupted, and running answers wait for it. While answers run, a slice may take so long that the
gap between two of their tokens is a few times what it is without prompts; with less, prompts would hardly come
forward. While none runs, it may take as long as a cancel may wait.
"""

from collections import deque
from statistics import median
from typing import Final

LADDER: Final = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    *((4 + quarter) << octave for octave in range(1, 9) for quarter in range(4)),
    2048,
)
"""Slices in tokens. As few as come within a quarter of what there is time for: some devices compile each shape."""
FIRST: Final = 32
"""The first slice of all, when nothing is known."""
GAP: Final = 5.5
"""The token gap with a prompt in work, in steps without: so far below 6 that hardly one is longer."""
LONGEST_S: Final = 0.25
"""A slice's time at most while no answer runs."""
STEPS: Final = 15
"""The median of so many is what a step without prompts takes: a machine that is busy for a moment delays some."""
SMOOTHING: Final = 0.3


class Pace:
    """Learns the speed of decoding and of prompt processing, and chooses slices by it."""

    def __init__(self) -> None:
        self._steps_s: deque[float] = deque(maxlen=STEPS)
        self._token_s: float | None = None
        self._context = 1.0
        """Tokens before a prompt's token that takes so long."""
        self._slice = FIRST

    def slice(self, running: int, prompts: int, at: int) -> int:
        """The tokens of each prompt to process in the next step.

        Args:
            running: Answers that wait for the step.
            prompts: Prompts that the step processes together.
            at: How far the longest of them has come.
        """
        if prompts == 0 or self._token_s is None:
            return self._slice
        seconds = (GAP - 1) * median(self._steps_s) if running and self._steps_s else LONGEST_S
        fitting = max((size for size in LADDER if prompts * self._takes(size, at) <= seconds), default=LADDER[0])
        self._slice = min(fitting, 2 * self._slice)  # what was learned from a short slice may not hold for a long one
        return self._slice

    def learn(self, seconds: float, running: int, prompts: int, tokens: int, at: int) -> None:
        """Takes in a step's time.

        Args:
            seconds: All of it.
            running: Answers that it decoded.
            prompts: Prompts that it processed a slice of.
            tokens: The longest of the slices.
            at: How far the longest prompt had come before.
        """
        if tokens == 0:
            if running:
                self._steps_s.append(seconds)
        elif tokens >= self._slice:  # less is the rest of a prompt, and costs more a token
            decode_s = median(self._steps_s) if running and self._steps_s else 0.0
            self._learn_token(max(seconds - decode_s, seconds / 10) / (prompts * tokens), at + tokens / 2)

    def _takes(self, size: int, at: int) -> float:
        """Seconds for a slice, at most: a token that looks back twice as far does not cost more than twice as much."""
        assert self._token_s is not None
        return size * self._token_s * max(1.0, (at + size / 2) / self._context)

    def _learn_token(self, token_s: float, context: float) -> None:
        """Believes at once what may come of another context, and little by little what is beyond that.

        The machine may have been busy for a moment.
        """
        if self._token_s is not None:
            low, high = sorted((self._token_s, self._token_s * context / self._context))
            explained = min(max(token_s, low), high)
            token_s = explained + SMOOTHING * (token_s - explained)
        self._token_s, self._context = token_s, context
