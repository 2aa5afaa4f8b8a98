"""How much of a prompt to process in one step.

A step cannot be interrupted, and running answers wait for it. While answers run, a slice may take so long that the
gap between two of their tokens is a few times what it is without prompts; with less, prompts would hardly come
forward. While none runs, it may take as long as a cancel may wait.
"""

from typing import Final

LADDER: Final = (32, 64, 128, 256, 512, 1024, 2048)
"""Slices in tokens. Few of them, since on some devices each shape is compiled."""
GAP: Final = 6.0
"""The token gap with a prompt in work, in steps without."""
LONGEST_S: Final = 0.25
"""A slice's time at most."""
SMOOTHING: Final = 0.3


class Pace:
    """Learns the speed of decoding and of prompt processing, and chooses slices by it."""

    def __init__(self) -> None:
        self._decode_s: float | None = None
        self._token_s: float | None = None
        self._slice = LADDER[0]

    def slice(self, running: int, prompts: int) -> int:
        """The tokens of each prompt to process in the next step.

        Args:
            running: Answers that wait for the step.
            prompts: Prompts that the step processes together.
        """
        if self._token_s is None:
            return self._slice
        seconds = LONGEST_S
        if running and self._decode_s is not None:
            seconds = min(seconds, (GAP - 1) * self._decode_s)
        tokens = seconds / self._token_s / max(prompts, 1)
        fitting = max((size for size in LADDER if size <= tokens), default=LADDER[0])
        self._slice = min(fitting, 2 * self._slice)  # what was learned from a short slice may not hold for a long one
        return self._slice

    def learn(self, seconds: float, running: int, tokens: int) -> None:
        """Takes in a step's time: with the answers that it decoded, and the prompt tokens that it processed."""
        if tokens == 0:
            self._decode_s = _smooth(self._decode_s, seconds) if running else self._decode_s
        elif tokens >= LADDER[0]:  # a shorter one costs about the same as a single token
            decode_s = (self._decode_s or 0.0) if running else 0.0
            self._token_s = _smooth(self._token_s, max(seconds - decode_s, seconds / 10) / tokens)


def _smooth(old: float | None, new: float) -> float:
    return new if old is None else old + SMOOTHING * (new - old)
