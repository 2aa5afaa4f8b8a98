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

While no answer runs, a chunk may take as long as a cancel may wait. If the fixed cost would be too large a share of
such a chunk, the chunk may take a few times as long.
"""

from collections import deque
from statistics import median
from typing import Final

from ..batching import compiles_each_shape, round_shape
from .batch_cost_model import BatchCostModel
from .chunk_cost_model import ChunkCostModel

CHUNK_SIZES: Final = (*(size << octave for octave in range(9) for size in (4, 6)), 2048)
"""Possible chunk lengths in tokens. They are few, since some devices compile kernels for each, and dense enough to use
two thirds of the time or more."""
PROBE_INTERVAL: Final = 8
"""Chunks between two that are one size shorter. Only different lengths reveal the fixed cost."""
FIRST_CHUNK: Final = 32
"""Length of the first chunk, before any measurement, in tokens."""
FIRST_CHUNK_PER_SHAPE: Final = 512
"""The same on a device that compiles kernels for each shape. Such devices are fast, and each new length is slow."""
MAX_TOKEN_GAP_STEPS: Final = 5.5
"""Maximum token gap during a prefill, in decode steps. The target is 6; the margin absorbs variance."""
UNNOTICEABLE_GAP_S: Final = 0.02
"""Token gap that is always acceptable, in seconds: nobody reads 50 tokens a second."""
TARGET_CHUNK_S: Final = 0.08
"""Duration of a chunk while no answer runs, in seconds. A cancel waits for its end, and should take effect within
100 ms. Prompts that fit into one such chunk are prefilled together, which is faster on most devices."""
MAX_FIXED_FRACTION: Final = 0.1
"""Maximum share of the fixed cost in a chunk's duration. Above it, chunks become longer."""
MAX_CHUNK_S: Final = 0.25
"""Maximum duration of such a chunk, in seconds."""
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
        self._last_chunk = FIRST_CHUNK_PER_SHAPE if self._compiles_each_shape else FIRST_CHUNK
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
            return self._last_chunk
        seconds = self._max_chunk_s(running, waiting)
        fitting = sum(self._chunk_cost(prompts * size, at + size / 2) <= seconds for size in CHUNK_SIZES[1:])
        self._chunk_count += 1
        if self._chunk_count % PROBE_INTERVAL == 0:
            fitting = fitting - 1 if fitting else 1
        most = 2 * self._last_chunk  # the model may not extrapolate further
        self._last_chunk = min(CHUNK_SIZES[fitting], most)
        if (
            self._last_chunk < remaining <= most
            and self._chunk_cost(prompts * remaining, at + remaining / 2) <= seconds
        ):
            return remaining  # otherwise the rest would need a chunk of its own
        return self._last_chunk

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
        if tokens >= self._last_chunk:  # shorter chunks are the ends of prompts, which cost more
            self._chunk_cost.record(prompts * tokens, at + tokens / 2, slice_s)

    def _step_s(self, running: int) -> float:
        """Return the duration of a step without prompts; 0 if no answer waits, or none was measured."""
        return median(self._steps_s) if running and self._steps_s else 0.0

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
