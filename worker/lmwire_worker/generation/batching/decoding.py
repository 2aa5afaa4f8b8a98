"""The settings of a batch's decode steps, and how wide a step may be."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .step_speeds import MIN_GAIN, StepSpeeds

if TYPE_CHECKING:
    from .speculative import TargetDraftPair

MAX_FOLLOWING_TOKENS: Final = 31
"""Maximum number of tokens that follow a row's newest one in a step, since a schema's constants have any length and no
step is interrupted."""
MAX_STEP_TOKENS: Final = 256
"""Maximum number of tokens that a GPU computes in a step of several rows, padding included, so that none takes much
longer than a step of one token each. The start of its kernels takes most of such a step."""


class Decoding(Struct, frozen=True):
    """Settings of a batch's decode steps."""

    eos_token_ids: set[int]
    """The tokens that end a turn or a gap."""
    xtc_special_tokens: set[int]
    """Tokens that XTC never excludes."""
    positions: int
    """Maximum number of positions of the model. Padding never exceeds it."""
    looks_up: bool = False
    """Tokens are proposed from each row's own text; see `PromptLookup`. All caches are plain KV caches then."""
    draft: "TargetDraftPair | None" = None
    """The network, if it has a draft model that proposes tokens."""
    several_rows: Callable[[], bool] = bool
    """Returns whether several rows may get different numbers of tokens in a step, which needs plain KV caches too."""
    speeds: StepSpeeds | None = None
    """Durations of steps, which decide whether a wider one is worth it; None to decide without a clock."""

    def is_worth_it(self, rows: int, width: int, gain: float) -> bool:
        """See `StepSpeeds.is_worth_it`."""
        if self.speeds is not None:
            return self.speeds.is_worth_it(rows, width, gain)
        return gain >= MIN_GAIN

    def room(self, rows: int, longest: int) -> int:
        """Return the maximum number of tokens that may follow each row's newest one in a step.

        Args:
            rows: Number of rows.
            longest: Tokens of the longest one.
        """
        room = MAX_FOLLOWING_TOKENS
        if rows > 1:
            if not self.several_rows():
                return 0
            room = min(room, MAX_STEP_TOKENS // rows - 1)
        return max(0, min(room, self.positions - longest - 1))
