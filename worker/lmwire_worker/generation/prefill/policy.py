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

from ..batching import prepares_each_shape, recurring
from .batch_cost_model import GroupCost
from .chunk_cost_model import SliceCost

LADDER: Final = (*(size << octave for octave in range(9) for size in (4, 6)), 2048)
"""Slices in tokens. Few, since some devices compile kernels for each, but hardly a third of the time is left unused."""
PROBED: Final = 8
"""Every so many slices one is a rung shorter: only slices of different lengths tell what is the same for all."""
FIRST: Final = 32
"""The first slice of all, when nothing is known."""
FIRST_PREPARED: Final = 512
"""The same on a device that prepares its kernels for each shape: a fast one, on which many lengths take long."""
GAP: Final = 5.5
"""The token gap with a prompt in work, in steps without: so far below 6 that hardly one is longer."""
UNNOTICED_S: Final = 0.02
"""A token gap that need not be shorter: 50 tokens a second are more than anyone reads."""
SOON_S: Final = 0.08
"""A slice's time while no answer runs: a cancel waits for its end, and is to land within 100 ms. Prompts that together
take no longer are processed together: most devices do that sooner than one after another, and none waits longer than
that for the others."""
FIXED_SHARE: Final = 0.1
"""A slice may cost so much of its time however short it is; where it costs more, slices are longer."""
LONGEST_S: Final = 0.25
"""How long they become for that, at most."""
ENOUGH: Final = 512
"""Tokens that keep most devices busy: prompts that have no more left are processed together in any case."""
FIRST_WAITS_S: Final = 0.0005
"""The requests of a burst come closer to each other, also over HTTP; a prompt that began alone keeps them waiting for
many times that."""
FIRST_WAITS_PREPARED_S: Final = 0.001
"""The same where each shape is prepared: a group of prompts has more costs of its own there."""
STEPS: Final = 15
"""The median of so many is what a step without prompts takes: a machine that is busy for a moment delays some."""


class Pace:
    """Learns the speed of decoding and of prompt processing, and chooses slices by it."""

    def __init__(self) -> None:
        self._prepares = prepares_each_shape()
        self.first_waits_s = FIRST_WAITS_PREPARED_S if self._prepares else FIRST_WAITS_S
        """Seconds that prompts which found nothing at work wait for another one, to be processed together with it."""
        self._prepared: set[tuple[int, int]] = set()
        """The shapes of which there was a slice. The first of each, for which kernels were prepared, tells nothing."""
        self._steps_s: deque[float] = deque(maxlen=STEPS)
        self._cost = SliceCost()
        self._groups = GroupCost()
        self._slice = FIRST_PREPARED if self._prepares else FIRST
        self._chosen = 0
        """Slices so far."""

    def slice(self, running: int, prompts: int, at: int, waiting: int = 0, left: int = 0) -> int:
        """The tokens of each prompt to process in the next step.

        Args:
            running: Answers that wait for the step.
            prompts: Prompts that the step processes together.
            at: How far the longest of them has come.
            waiting: Prompts that are not done, those included that the step does not process.
            left: Tokens that the longest of them misses.
        """
        if prompts == 0 or not self._cost.known:
            return self._slice
        seconds = self._slice_s(running, waiting)
        fitting = sum(self._cost(prompts * size, at + size / 2) <= seconds for size in LADDER[1:])
        self._chosen += 1
        if self._chosen % PROBED == 0:
            fitting = fitting - 1 if fitting else 1
        most = 2 * self._slice  # what holds for a short slice may not for a long one
        self._slice = min(LADDER[fitting], most)
        if self._slice < left <= most and self._cost(prompts * left, at + left / 2) <= seconds:
            return left  # the rest would be a slice by itself
        return self._slice

    def together(self, running: int, waiting: int) -> int:
        """Tokens that the prompts in work may have left, all together, unless one alone has more. See `slice`."""
        return max(ENOUGH, int(self._groups.tokens_in(min(self._slice_s(running, waiting), SOON_S))))

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
            return
        if self._prepares and (shape := recurring(prompts, tokens)) not in self._prepared:
            self._prepared.add(shape)
            return
        slice_s = max(seconds - self._step_s(running), seconds / 10)
        self._groups.learn(prompts * tokens, slice_s)
        if tokens >= self._slice:  # less is the rest of a prompt, and has costs of its own
            self._cost.learn(prompts * tokens, at + tokens / 2, slice_s)

    def _step_s(self, running: int) -> float:
        """A step without prompts; 0 while no answer waits for it, or none is known."""
        return median(self._steps_s) if running and self._steps_s else 0.0

    def _slice_s(self, running: int, waiting: int) -> float:
        """How long a slice may take."""
        step_s = self._step_s(running)
        gap_s = max(GAP * step_s, UNNOTICED_S)
        longest_s = min(max(SOON_S, self._cost.fixed_s / FIXED_SHARE), LONGEST_S)
        fitting_s = max(gap_s, min(waiting * gap_s, longest_s)) - step_s if step_s else longest_s
        half_s = step_s + 2 * self._cost.fixed_s  # the tokens then take as long as answers and fixed part together
        return max(fitting_s, half_s)
