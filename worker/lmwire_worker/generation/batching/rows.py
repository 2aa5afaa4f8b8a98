"""The rows of a batch: what each one computes, how far it is, and the sampler of all."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import mlx.core as mx

from lmwire_protocol.commands import Generation

from ..sampling.logprobs import BatchLogprobs, LogprobHandle
from ..sampling.penalties import EosBan, Penalties
from ..sampling.sampler import BatchSampler
from ..structured_output import Constraint, TokenMasks


class Row(Protocol):
    """A sequence, as the batch uses it."""

    request: Generation
    seed: int
    prompt: list[int]
    constraint: Constraint | None

    @property
    def remaining_tokens(self) -> int:
        """Maximum number of tokens still to generate, without an eos token."""
        ...

    def append_token(self, token: int, logprob: LogprobHandle | None) -> bool:
        """Append the row's next token, and return whether the row continues."""
        ...


@dataclass(frozen=True, slots=True)
class PromptProgress:
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


class RowState:
    """A row, with its tokens and its cache.

    Args:
        row: Receives the generated tokens.
        prompt: The tokens to start with. It must not change.
        cache: The cache of the first `prefix_tokens` of them, which this object takes over.
        prefix_tokens: Fewer than all tokens.
        checkpoints: Token counts at which a chunk ends. Another one ends before the last token.
    """

    def __init__(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any],
        prefix_tokens: int,
        checkpoints: Collection[int] = (),
    ) -> None:
        self.row = row
        self.prompt = prompt
        self.tokens = prompt[:prefix_tokens]
        """The tokens that the cache holds. The newest token is not one of them."""
        self.cache = cache
        """The row's own cache. In a group, the cache belongs to the group."""
        self.is_delivered = False
        """True if the row already has the token that its next step reads."""
        last = len(prompt) - 1
        self._chunk_ends = sorted({end for end in checkpoints if end < last} | {last})
        self._prefix_tokens = prefix_tokens

    @property
    def remaining(self) -> int:
        """Number of the prompt's tokens that are not computed."""
        return len(self.prompt) - len(self.tokens)

    def progress(self, computed: int) -> PromptProgress:
        """Return the progress of the prompt, of which `computed` tokens are computed or were cached."""
        done, total = computed - self._prefix_tokens, len(self.prompt) - self._prefix_tokens
        return PromptProgress(self.row, done, total, computed in self._chunk_ends)

    def next_chunk(self, size: int) -> list[int]:
        """Return the next tokens of the prompt, at most `size`, and none beyond a checkpoint. More than one remain."""
        start = len(self.tokens)
        stop = self._chunk_ends[bisect_right(self._chunk_ends, start)]
        return self.prompt[start : min(start + size, stop)]


class StepSampler:
    """Samples the next token of each row. Valid until rows join or leave; each call is a step.

    Args:
        rows: The rows. Their newest tokens come with the next call.
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
    """

    def __init__(self, rows: Sequence[RowState], eos_token_ids: set[int], xtc_special_tokens: set[int]) -> None:
        requests = [state.row.request for state in rows]
        positions = [len(state.tokens) for state in rows]
        generated = [len(state.tokens) + 1 - len(state.row.prompt) for state in rows]
        self._penalize = Penalties(requests, [state.tokens for state in rows])
        self._ban_eos = EosBan(requests, generated, eos_token_ids)
        self._masks = TokenMasks([state.row.constraint for state in rows])
        self._sample = BatchSampler(requests, [state.row.seed for state in rows], positions, xtc_special_tokens)
        self._logprobs = BatchLogprobs(requests)

    def __call__(self, raw: mx.array, newest: mx.array) -> tuple[mx.array, list[LogprobHandle | None]]:
        """Start to evaluate the next tokens.

        Args:
            raw: The model's logits [B, V] after the newest tokens.
            newest: The newest token of each row [B].

        Returns:
            The next tokens [B], and the log-probability handle of each row.
        """
        logits = self._ban_eos(self._penalize(raw, newest))
        if not self._masks.is_empty:
            if mx.default_device() == mx.cpu:
                mx.async_eval(logits)  # runs while the masks are made; on a GPU a second start costs more than it saves
            tokens_so_far: Any = newest.tolist()
            logits = self._masks(logits, tokens_so_far)
        tokens = self._sample(logits)
        handles = self._logprobs(raw, tokens)
        mx.async_eval(tokens, self._logprobs.pending)
        return tokens, handles
