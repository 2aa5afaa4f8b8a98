"""What prompts take that are processed together, learned from those that were."""

from collections import deque
from typing import Final

HISTORY: Final = 16
"""Slices."""
MAX_EXTRAPOLATION: Final = 4
"""Of slices so many times as long as the longest of them, a fixed part tells nothing."""
MIN_SPREAD: Final = 1e-3
"""Slices whose lengths spread less do not tell what is the same for all."""


class BatchCostModel:
    """Seconds for a slice of all prompts together: a fixed part, and a part for each token.

    The parts are those that fit best, by least squares, in proportion to the time of each slice: what a busy machine
    delayed, or what kernels were prepared for, counts the less.
    """

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, float]] = deque(maxlen=HISTORY)

    def record(self, tokens: int, seconds: float) -> None:
        """Takes in what a slice took, of so many tokens of all prompts."""
        self._chunks.append((tokens, seconds))

    def tokens_within(self, seconds: float) -> float:
        """How many tokens can be processed in so many seconds; 0 when nothing is known."""
        if not self._chunks:
            return 0
        fixed_s, token_s = self._parts()
        if not fixed_s:
            return seconds / token_s
        most = MAX_EXTRAPOLATION * max(tokens for tokens, _ in self._chunks)
        return min((seconds - fixed_s) / token_s, most) if token_s else most

    def _parts(self) -> tuple[float, float]:
        """The fixed part and that of a token. None is negative."""
        ones = sum(1 / seconds for _, seconds in self._chunks)
        tokens = sum(count / seconds for count, seconds in self._chunks)
        one_one = sum(1 / seconds**2 for _, seconds in self._chunks)
        one_token = sum(count / seconds**2 for count, seconds in self._chunks)
        token_token = sum((count / seconds) ** 2 for count, seconds in self._chunks)
        spread = one_one * token_token - one_token**2
        if spread <= MIN_SPREAD * one_one * token_token:
            return 0.0, tokens / token_token
        fixed_s = (ones * token_token - tokens * one_token) / spread
        token_s = (tokens * one_one - ones * one_token) / spread
        if token_s <= 0:
            return ones / one_one, 0.0
        return (fixed_s, token_s) if fixed_s > 0 else (0.0, tokens / token_token)
