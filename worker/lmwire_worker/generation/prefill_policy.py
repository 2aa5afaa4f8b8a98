"""Choose the length of a prefill chunk.

A step cannot be interrupted, and running answers wait for it. Two goals conflict:

- The gap between two tokens of a running answer stays within a few decode steps (`MAX_TOKEN_GAP_STEPS`), or below what
  a reader notices (`UNNOTICEABLE_GAP_S`). Shorter gaps would gain nothing and cost speed, since short chunks use the
  device badly. In a burst, the limit is multiplied by the number of waiting prompts: a few long gaps delay answers as
  much as many short ones, and all requests finish sooner the earlier they run together.
- The prompt makes progress. Each step has a cost before the first prompt token: the answers' tokens, and the fixed
  cost of a chunk.

If both cannot be met, the prompt gets about half of the step: its tokens take as long as the rest of the step, even if
the gap grows. So a prompt takes about twice as long as alone at most, and a gap is about twice the minimum.

While no answer runs, a chunk may take as long as another prompt may wait for its turn. If the fixed cost would be too
large a share of such a chunk, the chunk may take a few times as long. That of a prompt alone may take longer still:
nobody waits, since a cancel of a prompt needs no step to end.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

from .batching import compiles_each_shape, round_shape

CHUNK_SIZES: Final = (*(size << octave for octave in range(9) for size in (4, 6)), 2048)
"""Possible chunk lengths in tokens. They are few, since some devices compile kernels for each, and dense enough to use
two thirds of the time or more."""
PROBE_INTERVAL: Final = 8
"""Chunks between two that are one size shorter. Only different lengths reveal the fixed cost."""
FIRST_CHUNK: Final = 32
"""Length of the first chunk, before any measurement, in tokens."""
FIRST_CHUNK_PER_SHAPE: Final = 512
"""The same on a device that compiles kernels for each shape. Such devices are fast, and each new length is slow."""
LEAST_TOKENS_PER_SHAPE: Final = 256
"""Minimum tokens of a chunk on such a device, over all prompts. The arithmetic for 256 tokens takes about as long as to
read the weights, and a new length of the context can take longer than both. So shorter chunks would only be more of
them."""
MAX_TOKEN_GAP_STEPS: Final = 5.5
"""Maximum token gap during a prefill, in decode steps. The target is 6; the margin absorbs variance."""
UNNOTICEABLE_GAP_S: Final = 0.02
"""Token gap that is always acceptable, in seconds: nobody reads 50 tokens a second."""
TARGET_CHUNK_S: Final = 0.08
"""Duration of a chunk while no answer runs, in seconds. Prompts that fit into one such chunk are prefilled together,
which is faster on most devices."""
MAX_FIXED_FRACTION: Final = 0.1
"""Maximum share of the fixed cost in a chunk's duration. Above it, chunks become longer."""
MAX_CHUNK_S: Final = 0.25
"""Maximum duration of such a chunk, in seconds."""
MAX_LONE_FIXED_FRACTION: Final = 0.03
"""The same for the only prompt."""
MAX_LONE_CHUNK_S: Final = 4.0
"""Maximum duration of its chunk, in seconds: the longest wait of a request that comes meanwhile."""
SATURATING_TOKENS: Final = 512
"""Tokens that saturate most devices. Prompts with no more remaining tokens are always prefilled together."""
BATCH_WAIT_S: Final = 0.0005
"""Time that the first request waits for others, in seconds. The requests of a burst arrive closer together, even over
HTTP, and a prefill that starts alone would delay them much longer."""
BATCH_WAIT_PER_SHAPE_S: Final = 0.001
"""The same on a device that compiles kernels for each shape, where each prefill has a higher fixed cost."""
STEP_HISTORY: Final = 15
"""Number of decode steps whose median duration counts. A busy machine delays some of them."""


class PrefillPolicy:
    """Measures the speed of decode and prefill, and chooses chunks by it."""

    def __init__(self) -> None:
        self._compiles_each_shape = compiles_each_shape()
        self.batch_wait_s = BATCH_WAIT_PER_SHAPE_S if self._compiles_each_shape else BATCH_WAIT_S
        """Seconds that the first requests wait for others, to be prefilled together."""
        self._compiled_shapes: set[tuple[int, int]] = set()
        """The shapes computed so far. The first chunk of each includes compilation, and is not measured."""
        self._steps_s: deque[float] = deque(maxlen=STEP_HISTORY)
        self._chunk_cost = ChunkCostModel()
        self._batch_cost = BatchCostModel()
        self.last_chunk = FIRST_CHUNK_PER_SHAPE if self._compiles_each_shape else FIRST_CHUNK
        self._chunk_count = 0
        """Number of chunks chosen so far."""

    def chunk_size(self, running: int, prompts: int, at: int, waiting: int = 0, remaining: int = 0) -> int:
        """Return the number of tokens of each prompt to compute in the next step.

        Args:
            running: Answers that wait for the step.
            prompts: Prompts that the step computes together.
            at: Computed tokens of the most advanced of them.
            waiting: Incomplete prompts, including those that the step does not compute.
            remaining: Maximum of their remaining tokens.
        """
        if prompts == 0 or not self._chunk_cost.is_known:
            return self.last_chunk
        seconds = self._max_chunk_s(running, waiting)
        if not running and waiting <= 1:
            seconds = max(seconds, min(self._chunk_cost.fixed_s / MAX_LONE_FIXED_FRACTION, MAX_LONE_CHUNK_S))
        fitting = sum(self._chunk_cost(prompts * size, at + size / 2) <= seconds for size in CHUNK_SIZES[1:])
        self._chunk_count += 1
        if self._chunk_count % PROBE_INTERVAL == 0:
            fitting = fitting - 1 if fitting else 1
        most = 2 * self.last_chunk  # the model may not extrapolate further
        self.last_chunk = min(CHUNK_SIZES[fitting], most)
        if self._compiles_each_shape:
            least = next(size for size in CHUNK_SIZES if prompts * size >= LEAST_TOKENS_PER_SHAPE)
            self.last_chunk = max(self.last_chunk, least)
        if self.last_chunk < remaining <= most and self._chunk_cost(prompts * remaining, at + remaining / 2) <= seconds:
            return remaining  # otherwise the rest would need a chunk of its own
        return self.last_chunk

    def max_batch_tokens(self, running: int, waiting: int) -> int:
        """Return the maximum of the remaining tokens of all prompts in work. A single prompt may have more.

        Args:
            running: Answers that wait for the step.
            waiting: Incomplete prompts.
        """
        return max(
            SATURATING_TOKENS,
            int(self._batch_cost.tokens_within(min(self._max_chunk_s(running, waiting), TARGET_CHUNK_S))),
        )

    def prefill_s(self, tokens: int, at: int) -> float:
        """Predict how long a prompt's tokens take alone, in seconds; infinity before any measurement.

        Args:
            tokens: Number of tokens to compute.
            at: Number of tokens before them.
        """
        if not self._chunk_cost.is_known:
            return math.inf
        size = min(self.last_chunk, tokens)
        return tokens / size * self._chunk_cost(size, at + tokens / 2)

    def is_worth_a_chunk(self, tokens: int, running: int) -> bool:
        """Return whether to compute tokens takes as long as one more chunk, without its tokens.

        Args:
            tokens: The tokens, over all prompts.
            running: Answers that get a token before that chunk.
        """
        fixed_s, token_s = self._batch_cost.parts()
        if not fixed_s or not token_s:  # the chunks so far do not show it
            return tokens >= SATURATING_TOKENS
        return tokens * token_s >= fixed_s + self._step_s(running)

    def record_step(self, seconds: float, running: int, prompts: int, tokens: int, at: int) -> None:
        """Record the duration of a step.

        Args:
            seconds: The duration.
            running: Answers that the step decoded.
            prompts: Prompts of which it computed a chunk.
            tokens: Length of the longest chunk; 0 without any.
            at: Computed tokens of the most advanced prompt, before the step.
        """
        if tokens == 0:
            if running:
                self._steps_s.append(seconds)
            return
        if self._compiles_each_shape and (shape := round_shape(prompts, tokens)) not in self._compiled_shapes:
            self._compiled_shapes.add(shape)
            return
        slice_s = max(seconds - self._step_s(running), seconds / 10)
        self._batch_cost.record(prompts * tokens, slice_s)
        if tokens >= self.last_chunk:  # shorter chunks are the ends of prompts, which cost more
            self._chunk_cost.record(prompts * tokens, at + tokens / 2, slice_s)

    def _step_s(self, running: int) -> float:
        """Return the duration of a step without prompts; 0 if no answer waits, or none was measured."""
        if not (running and self._steps_s):
            return 0.0
        steps_s = sorted(self._steps_s)  # `statistics` would import the fractions and the decimals
        middle = len(steps_s) // 2
        return (steps_s[middle] + steps_s[~middle]) / 2

    def _max_chunk_s(self, running: int, waiting: int) -> float:
        """Return the maximum duration of a chunk, in seconds."""
        step_s = self._step_s(running)
        gap_s = max(MAX_TOKEN_GAP_STEPS * step_s, UNNOTICEABLE_GAP_S)
        longest_s = min(max(TARGET_CHUNK_S, self._chunk_cost.fixed_s / MAX_FIXED_FRACTION), MAX_CHUNK_S)
        fitting_s = max(gap_s, min(waiting * gap_s, longest_s)) - step_s if step_s else longest_s
        half_s = (
            step_s + 2 * self._chunk_cost.fixed_s
        )  # the chunk's tokens take as long as answers and fixed cost together
        return max(fitting_s, half_s)


# The duration of a chunk, predicted from earlier chunks.

DECAY: Final = 0.9
"""Weight of a chunk relative to the next one. About ten chunks count, since a machine's speed changes."""
UPDATE_SWEEPS: Final = 10
MAX_OUTLIER_RATIO: Final = 4.0
"""Maximum ratio of a measured to a predicted duration. Longer ones are clipped: the machine was probably busy."""
MIN_PART_FRACTION: Final = 0.001
"""Minimum share of each part in a chunk's duration, so that a part can grow again."""


class ChunkCostModel:
    """A linear model of a chunk's duration: a fixed part, a part for each token, and one for each attended token.

    The fit is non-negative least squares of the relative error, by multiplicative updates
    (https://en.wikipedia.org/wiki/Non-negative_matrix_factorization). It continues from the previous parts. So chunks
    of equal length scale all parts alike, and keep the proportions that chunks of different lengths have shown.
    """

    def __init__(self) -> None:
        self.is_known = False
        """True after the first chunk."""
        self._parts = [0.0, 0.0, 0.0]
        self._start_again(0.0)

    @property
    def fixed_s(self) -> float:
        """Duration of a chunk without its tokens, in seconds."""
        return self._parts[0]

    def __call__(self, tokens: int, context: float) -> float:
        """Predict the duration of a chunk, in seconds.

        Args:
            tokens: Tokens of all prompts together.
            context: Tokens that each of them attends to, on average.
        """
        return _dot(self._parts, (1.0, tokens, tokens * context))

    def record(self, tokens: int, context: float, seconds: float) -> None:
        """Record the duration of a chunk.

        Args:
            tokens: Tokens of all prompts together.
            context: Tokens that each of them attends to, on average.
            seconds: The duration.
        """
        if seconds < self.fixed_s:  # the machine was busy, and is free again
            self._start_again(seconds / self(tokens, context))
        expected = self(tokens, context) if self.is_known else seconds
        units = [1 / expected, tokens / expected, tokens * context / expected]
        if not self.is_known:
            self._parts = [1 / (3 * unit) for unit in units]
        self.is_known = True
        self._remember(units, min(seconds / expected, MAX_OUTLIER_RATIO))
        for _ in range(UPDATE_SWEEPS):
            self._sweep()
        self._parts = [max(part, MIN_PART_FRACTION / unit) for part, unit in zip(self._parts, units, strict=True)]

    def _start_again(self, speed: float) -> None:
        """Forget all chunks, and scale the parts by `speed`."""
        self._parts = [part * speed for part in self._parts]
        self._products = [[0.0] * 3 for _ in range(3)]
        self._targets = [0.0, 0.0, 0.0]

    def _remember(self, units: Sequence[float], ratio: float) -> None:
        self._products = [
            [DECAY * product + one * other for product, other in zip(row, units, strict=True)]
            for row, one in zip(self._products, units, strict=True)
        ]
        self._targets = [DECAY * target + unit * ratio for target, unit in zip(self._targets, units, strict=True)]

    def _sweep(self) -> None:
        """Move the parts closer to the best fit."""
        together = zip(self._parts, self._targets, self._products, strict=True)
        self._parts = [part * target / _dot(row, self._parts) for part, target, row in together]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# The duration of a chunk of several prompts.

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
        fixed_s, token_s = self.parts()
        if not fixed_s:
            return seconds / token_s
        most = MAX_EXTRAPOLATION * max(tokens for tokens, _ in self._chunks)
        return min((seconds - fixed_s) / token_s, most) if token_s else most

    def parts(self) -> tuple[float, float]:
        """Return the fixed part and the part of a token, in seconds. A part that was not seen is 0."""
        if not self._chunks:
            return 0.0, 0.0
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
