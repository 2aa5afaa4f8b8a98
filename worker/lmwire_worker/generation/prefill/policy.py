"""How much of a prompt to process in one step.

A step cannot be interrupted, and running answers wait for it. Two aims pull at it:

- The gap between two tokens of a running answer is to be a few times what it is without prompts (`GAP`), or so short
  that nobody notices (`UNNOTICED_S`): streams of a very fast model would gain nothing by more, and lose much, since
  short slices waste the machine for all. In a burst of requests it may be as many times that as prompts wait: answers
  stop for as long in few long gaps as in many short ones, and all are done sooner the more of them run together.
- The prompt is to come forward. A step costs something before the first of its prompt's tokens is processed: the
  answers' tokens, and what a slice costs however short it is.

Where both cannot be had, the prompt gets about half of the step: its tokens may take as long as all else in the step,
even if the gap becomes longer for it. So a prompt takes hardly more than twice as long as alone, whatever runs beside
it, and a gap is about twice as long as the shortest slice would make it.

While no answer runs, a slice may take as long as a cancel may wait, with the same exception, and another: where too
much of so short a slice goes to what it costs however short it is, it may take a few times as long.
"""

from collections import deque
from statistics import median
from typing import Final

from ..batching import compiles_each_shape, round_shape
from .batch_cost_model import BatchCostModel
from .chunk_cost_model import ChunkCostModel

CHUNK_SIZES: Final = (*(size << octave for octave in range(9) for size in (4, 6)), 2048)
"""Slices in tokens. Few, since some devices compile kernels for each, but hardly a third of the time is left unused."""
PROBE_INTERVAL: Final = 8
"""Every so many slices one is a rung shorter: only slices of different lengths tell what is the same for all."""
FIRST_CHUNK: Final = 32
"""The first slice of all, when nothing is known."""
FIRST_CHUNK_PER_SHAPE: Final = 512
"""The same on a device that prepares its kernels for each shape: a fast one, on which many lengths take long."""
MAX_TOKEN_GAP_STEPS: Final = 5.5
"""The token gap with a prompt in work, in steps without: so far below 6 that hardly one is longer."""
UNNOTICEABLE_GAP_S: Final = 0.02
"""A token gap that need not be shorter: 50 tokens a second are more than anyone reads."""
TARGET_CHUNK_S: Final = 0.08
"""A slice's time while no answer runs: a cancel waits for its end, and is to land within 100 ms. Prompts that together
take no longer are processed together: most devices do that sooner than one after another, and none waits longer than
that for the others."""
MAX_FIXED_FRACTION: Final = 0.1
"""A slice may cost so much of its time however short it is; where it costs more, slices are longer."""
MAX_CHUNK_S: Final = 0.25
"""How long they become for that, at most."""
SATURATING_TOKENS: Final = 512
"""Tokens that keep most devices busy: prompts that have no more left are processed together in any case."""
BATCH_WAIT_S: Final = 0.0005
"""The requests of a burst come closer to each other, also over HTTP; a prompt that began alone keeps them waiting for
many times that."""
BATCH_WAIT_PER_SHAPE_S: Final = 0.001
"""The same where each shape is prepared: a group of prompts has more costs of its own there."""
STEP_HISTORY: Final = 15
"""The median of so many is what a step without prompts takes: a machine that is busy for a moment delays some."""


class PrefillPolicy:
    """Learns the speed of decoding and of prompt processing, and chooses slices by it."""

    def __init__(self) -> None:
        self._compiles_each_shape = compiles_each_shape()
        self.batch_wait_s = BATCH_WAIT_PER_SHAPE_S if self._compiles_each_shape else BATCH_WAIT_S
        """Seconds that prompts which found nothing at work wait for another one, to be processed together with it."""
        self._compiled_shapes: set[tuple[int, int]] = set()
        """The shapes of which there was a slice. The first of each, for which kernels were prepared, tells nothing."""
        self._steps_s: deque[float] = deque(maxlen=STEP_HISTORY)
        self._chunk_cost = ChunkCostModel()
        self._batch_cost = BatchCostModel()
        self._last_chunk = FIRST_CHUNK_PER_SHAPE if self._compiles_each_shape else FIRST_CHUNK
        self._chunk_count = 0
        """Slices so far."""

    def chunk_size(self, running: int, prompts: int, at: int, waiting: int = 0, left: int = 0) -> int:
        """The tokens of each prompt to process in the next step.

        Args:
            running: Answers that wait for the step.
            prompts: Prompts that the step processes together.
            at: How far the longest of them has come.
            waiting: Prompts that are not done, those included that the step does not process.
            left: Tokens that the longest of them misses.
        """
        if prompts == 0 or not self._chunk_cost.is_known:
            return self._last_chunk
        seconds = self._max_chunk_s(running, waiting)
        fitting = sum(self._chunk_cost(prompts * size, at + size / 2) <= seconds for size in CHUNK_SIZES[1:])
        self._chunk_count += 1
        if self._chunk_count % PROBE_INTERVAL == 0:
            fitting = fitting - 1 if fitting else 1
        most = 2 * self._last_chunk  # what holds for a short slice may not for a long one
        self._last_chunk = min(CHUNK_SIZES[fitting], most)
        if self._last_chunk < left <= most and self._chunk_cost(prompts * left, at + left / 2) <= seconds:
            return left  # the rest would be a slice by itself
        return self._last_chunk

    def max_batch_tokens(self, running: int, waiting: int) -> int:
        """Tokens that the prompts in work may have left, all together, unless one alone has more. See `slice`."""
        return max(
            SATURATING_TOKENS,
            int(self._batch_cost.tokens_within(min(self._max_chunk_s(running, waiting), TARGET_CHUNK_S))),
        )

    def record_step(self, seconds: float, running: int, prompts: int, tokens: int, at: int) -> None:
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
            return
        if self._compiles_each_shape and (shape := round_shape(prompts, tokens)) not in self._compiled_shapes:
            self._compiled_shapes.add(shape)
            return
        slice_s = max(seconds - self._step_s(running), seconds / 10)
        self._batch_cost.record(prompts * tokens, slice_s)
        if tokens >= self._last_chunk:  # less is the rest of a prompt, and has costs of its own
            self._chunk_cost.record(prompts * tokens, at + tokens / 2, slice_s)

    def _step_s(self, running: int) -> float:
        """A step without prompts; 0 while no answer waits for it, or none is known."""
        return median(self._steps_s) if running and self._steps_s else 0.0

    def _max_chunk_s(self, running: int, waiting: int) -> float:
        """How long a slice may take."""
        step_s = self._step_s(running)
        gap_s = max(MAX_TOKEN_GAP_STEPS * step_s, UNNOTICEABLE_GAP_S)
        longest_s = min(max(TARGET_CHUNK_S, self._chunk_cost.fixed_s / MAX_FIXED_FRACTION), MAX_CHUNK_S)
        fitting_s = max(gap_s, min(waiting * gap_s, longest_s)) - step_s if step_s else longest_s
        half_s = (
            step_s + 2 * self._chunk_cost.fixed_s
        )  # the tokens then take as long as answers and fixed part together
        return max(fitting_s, half_s)
