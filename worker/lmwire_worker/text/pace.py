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
GAP: Final = 5.75
"""The token gap with a prompt in work, in steps without: below 6, so that hardly one is longer."""
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
        self._slice = FIRST

    def slice(self, running: int, prompts: int) -> int:
        """The tokens of each prompt to process in the next step.

        Args:
            running: Answers that wait for the step.
            prompts: Prompts that the step processes together.
        """
        if prompts == 0 or self._token_s is None:
            return self._slice
        seconds = (GAP - 1) * median(self._steps_s) if running and self._steps_s else LONGEST_S
        tokens = seconds / self._token_s / prompts
        fitting = max((size for size in LADDER if size <= tokens), default=LADDER[0])
        self._slice = min(fitting, 2 * self._slice)  # what was learned from a short slice may not hold for a long one
        return self._slice

    def learn(self, seconds: float, running: int, tokens: int) -> None:
        """Takes in a step's time: with the answers that it decoded, and the prompt tokens that it processed."""
        if tokens == 0:
            if running:
                self._steps_s.append(seconds)
        elif tokens >= self._slice:  # less is the rest of a prompt, and costs more a token
            decode_s = median(self._steps_s) if running and self._steps_s else 0.0
            token_s = max(seconds - decode_s, seconds / 10) / tokens
            self._token_s = token_s if self._token_s is None else self._token_s + SMOOTHING * (token_s - self._token_s)
