"""The rows of a batch: what each sequence asks for, and how far it is."""

from bisect import bisect_right, insort
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from lmwire_protocol.commands import Generation

from ..banned_strings import BannedStrings
from ..sampling.logprobs import LogprobHandle
from ..structured_output.constraint import Constraint

if TYPE_CHECKING:
    from ..sampling.dry import Repetitions
    from .pace import Pace
    from .prompt_lookup import PromptLookup


class Row(Protocol):
    """A sequence, as the batch uses it."""

    request: Generation
    seed: int
    prompt: list[int]
    constraint: Constraint | None
    repetitions: "Repetitions | None"
    """The repetitions that DRY penalizes; None for a row without DRY."""
    bans: BannedStrings | None
    """The strings that the answer must not contain; None if it may contain anything."""

    @property
    def remaining_tokens(self) -> int:
        """Maximum number of tokens still to generate, without an eos token."""
        ...

    def append_token(self, token: int, logprob: LogprobHandle | None, *, drafted: bool = False) -> bool:
        """Append the row's next token, and return whether the row continues.

        Args:
            token: The token.
            logprob: Its log-probability, if the request asks for it.
            drafted: A draft proposed the token.
        """
        ...

    def forced_tokens(self, token: int, limit: int) -> list[int]:
        """Give the constraint the newest token, and return the only tokens that may follow it, at most `limit`."""
        ...


class PromptProgress(Struct, frozen=True):
    """The progress of a row's prompt, without the tokens that were cached."""

    row: Any
    """The row, as it was added."""
    done: int
    """Number of tokens computed."""
    total: int
    """Number of tokens to compute."""
    at_checkpoint: bool
    """True if the caches can be stored now."""

    @property
    def is_complete(self) -> bool:
        """True if the whole prompt is computed, its last token included."""
        return self.done == self.total


class FollowingToken(NamedTuple):
    """A token that a step computed after the one that it was started for."""

    token: int
    logprob: LogprobHandle | None = None
    drafted: bool = False


class RowState:
    """A row, with its tokens and its cache.

    Args:
        row: Receives the generated tokens.
        prompt: The tokens to start with. It must not change.
        cache: The cache of the first `prefix_tokens` of them, which this object takes over.
        prefix_tokens: Fewer than all tokens.
        checkpoints: Token counts at which a chunk ends. Another one ends before the last token.
        order: Place among the queued rows: those with a lower number come first.
    """

    def __init__(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any],
        prefix_tokens: int,
        checkpoints: Collection[int] = (),
        order: int = 0,
    ) -> None:
        self.row = row
        self.order = order
        self.prompt = prompt
        self.tokens = prompt[:prefix_tokens]
        """The tokens that the cache holds. The newest token is not one of them."""
        self.cache = cache
        """The row's own cache. In a group, the cache belongs to the group."""
        self.is_delivered = False
        """True if the row already has the token that its next step reads."""
        self.following: list[FollowingToken] = []
        """The tokens after that one that the same step computed: a grammar allows no others, or a draft was right."""
        self.lookup: PromptLookup | None = None
        """Proposes tokens from the row's own text; None until the row asks for some."""
        self.pace: Pace | None = None
        """Sets the number of tokens that a draft model proposes; None until it proposes some."""
        last = len(prompt) - 1
        self._chunk_ends = sorted({end for end in checkpoints if end < last} | {last})
        self._prefix_tokens = prefix_tokens

    @property
    def remaining(self) -> int:
        """Number of the prompt's tokens that are not computed."""
        return len(self.prompt) - len(self.tokens)

    @property
    def samples_by_position(self) -> bool:
        """True if no token before a place affects how its logits are sampled, but only its position."""
        return self.row.constraint is None and not changes_logits(self.row.request)

    def progress(self, computed: int) -> PromptProgress:
        """Return the progress of the prompt, of which `computed` tokens are computed or were cached."""
        done, total = computed - self._prefix_tokens, len(self.prompt) - self._prefix_tokens
        return PromptProgress(self.row, done, total, computed in self._chunk_ends)

    def pause_at(self, end: int) -> None:
        """Let a chunk end after `end` tokens, which are more than are computed."""
        if end not in self._chunk_ends:
            insort(self._chunk_ends, end)

    def next_chunk(self, size: int) -> list[int]:
        """Return the next tokens of the prompt, at most `size`, and none beyond a checkpoint. More than one remain."""
        start = len(self.tokens)
        stop = self._chunk_ends[bisect_right(self._chunk_ends, start)]
        return self.prompt[start : min(start + size, stop)]


def changes_logits(request: Generation) -> bool:
    """Return whether a request asks for other logits than the model's."""
    penalties = (request.repetition_penalty, request.presence_penalty, request.frequency_penalty)
    bans = (request.ignore_eos, request.min_tokens, request.banned_strings)
    return any((request.logit_bias, request.dry_multiplier, *bans)) or penalties != (1, 0, 0)
