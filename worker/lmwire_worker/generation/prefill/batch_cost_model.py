"""Predict the duration of a chunk of several prompts, from earlier chunks."""

from collections import deque
from typing import Final

HISTORY: Final = 16
"""Number of chunks remembered."""
MAX_EXTRAPOLATION: Final = 4
"""Maximum ratio of a predicted chunk to the longest measured one. Beyond it, a fixed part cannot be trusted."""
MIN_SPREAD: Final = 1e-3
"""Minimum relative variance of the chunks' lengths. With less, the fixed part cannot be separated."""


class BatchCostModel:
    """A linear model of a chunk's duration: a fixed part, and a part for each token of all prompts.

    The fit is least squares of the relative error, so that chunks delayed by a busy machine or by the compilation of
    kernels count less.
    """

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, float]] = deque(maxlen=HISTORY)

    def record(self, tokens: int, seconds: float) -> None:
        """Record the duration of a chunk.

        Args:
            tokens: Tokens of all prompts together.
            seconds: The duration.
        """
        self._chunks.append((tokens, seconds))

    def tokens_within(self, seconds: float) -> float:
        """Return the number of tokens that a chunk of `seconds` computes; 0 without any measurement."""
        if not self._chunks:
            return 0
        fixed_s, token_s = self._parts()
        if not fixed_s:
            return seconds / token_s
        most = MAX_EXTRAPOLATION * max(tokens for tokens, _ in self._chunks)
        return min((seconds - fixed_s) / token_s, most) if token_s else most

    def _parts(self) -> tuple[float, float]:
        """Return the fixed part and the part of a token, both 0 or more, in seconds."""
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
