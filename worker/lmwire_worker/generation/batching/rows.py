"""The rows of a batch: what each one computes, how far it is, and groups of rows that are computed together."""

import copy
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import mlx.core as mx
from mlx import nn
from msgspec import Struct

from lmwire_protocol.commands import Generation

from ..sampling.logits_processors import EosBan, Penalties
from ..sampling.logprobs import BatchLogprobs, LogprobHandle
from ..structured_output.constraint import Constraint
from .caches import Checkpoint, RowCache, copy_row, evaluate, merge_caches, to_batched, to_single
from .chunks import compute_chunks

if TYPE_CHECKING:
    from ..structured_output.token_masks import TokenMasks


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
        self._masks = _new_masks([state.row.constraint for state in rows])
        self._sample = _new_sampler(requests, [state.row.seed for state in rows], positions, xtc_special_tokens)
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
        if self._masks is not None:
            if mx.default_device() == mx.cpu:
                mx.async_eval(logits)  # runs while the masks are made; on a GPU a second start costs more than it saves
            tokens_so_far: Any = newest.tolist()
            logits = self._masks(logits, tokens_so_far)
        tokens = self._sample(logits)
        handles = self._logprobs(raw, tokens)
        mx.async_eval(tokens, self._logprobs.pending)
        return tokens, handles


# Both need numpy, whose import takes longer than a short prompt. So they come with the first rows that need them.


def _new_masks(constraints: Sequence[Constraint | None]) -> "TokenMasks | None":
    """Return the token masks of rows; None if none is constrained."""
    if not any(constraints):
        return None
    from ..structured_output.token_masks import TokenMasks

    return TokenMasks(constraints)


def _new_sampler(
    requests: Sequence[Generation], seeds: Sequence[int], positions: Sequence[int], special: Collection[int]
) -> Callable[[mx.array], mx.array]:
    """Return what gives the next tokens [B] of logits [B, V]; see `BatchSampler` for the arguments."""
    if not any(request.temperature > 0 for request in requests):
        return partial(mx.argmax, axis=-1)
    from ..sampling.sampler import BatchSampler

    return BatchSampler(requests, seeds, positions, special)


class RowGroup:
    """Rows with one cache for all: prompts that are prefilled, or answers that are decoded.

    While there is one row, its cache keeps its single form, which is faster, and exact.

    Args:
        model: The network.
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
        rows: The first rows. The group takes their caches over.
    """

    def __init__(
        self, model: nn.Module, eos_token_ids: set[int], xtc_special_tokens: set[int], rows: Collection[RowState] = ()
    ) -> None:
        self.rows = list(rows)
        self.has_new_rows = False
        """True if answers have joined since the last step."""
        self._model = model
        self._sampling = (eos_token_ids, xtc_special_tokens)
        self._caches = merge_caches([state.cache for state in rows])
        for state in rows:
            state.cache = []
        self._newest: mx.array | None = None
        """The tokens [B] that the next step reads; None for prompts."""
        self._handles: list[LogprobHandle | None] = []
        """Their log-probability handles."""
        self._sample: StepSampler | None = None
        """The sampler of these rows; None until the next step."""

    @property
    def nbytes(self) -> int:
        """Size of the caches, in bytes."""
        return sum(cache.nbytes for cache in self._caches)

    @property
    def awaits_first_tokens(self) -> bool:
        """True if answers have joined since the last step, and no row has got a token since."""
        return self.has_new_rows and not any(state.is_delivered for state in self.rows)

    def contains(self, row: Row) -> bool:
        """Return whether a row is here."""
        return any(state.row is row for state in self.rows)

    # Rows come and go.

    def extend(self, other: "RowGroup") -> None:
        """Take over all rows of another group."""
        if not self.rows:
            self._caches, self._newest = other._caches, other._newest
        elif other.rows:
            self._caches = [to_batched(cache) for cache in self._caches]
            for cache, more in zip(self._caches, other._caches, strict=True):
                cache.extend(to_batched(more))
            if self._newest is not None and other._newest is not None:
                self._newest = mx.concatenate([self._newest, other._newest])
        self.rows += other.rows
        self._handles += other._handles
        self._sample = None

    def take(self, rows: Collection[Row]) -> "RowGroup":
        """Remove rows, and return them as a group."""
        taken = RowGroup(self._model, *self._sampling)
        taken.extend(self)
        if len(rows) < len(self.rows):
            taken._caches = copy.deepcopy(self._caches)  # copies no arrays
            taken._keep([index for index, state in enumerate(self.rows) if state.row in rows])
        self.drop(rows)
        return taken

    def drop(self, rows: Collection[Row]) -> None:
        """Remove those of the rows that are here."""
        staying = [index for index, state in enumerate(self.rows) if state.row not in rows]
        if len(staying) < len(self.rows):
            self._keep(staying)

    def _keep(self, indices: list[int]) -> None:
        """Keep the rows with these indices."""
        self.rows = [self.rows[index] for index in indices]
        self._sample = None
        if not indices:
            self._caches, self._newest, self._handles = [], None, []
            return
        for cache in self._caches:
            cache.filter(indices)
        if len(indices) == 1:
            self._caches = [to_single(cache) for cache in self._caches]
        if self._newest is not None:
            self._newest = self._newest[mx.array(indices)]
            self._handles = [self._handles[index] for index in indices]

    # Their caches.

    def checkpoint(self, row: Row) -> Checkpoint | None:
        """Return the cache of a row; None if it is empty or incomplete."""
        index = self._index(row)
        tokens = self.rows[index].tokens
        cache = RowCache(self._caches, index, len(tokens))
        return Checkpoint(tokens, cache) if tokens and cache.complete else None

    def copy_cache(self, row: Row) -> list[Any]:
        """Return a copy of the cache of a row."""
        index = self._index(row)
        cache = [copy_row(layer, index) for layer in self._caches]
        evaluate(cache)  # otherwise it keeps the whole group in memory
        return cache

    def _index(self, row: Row) -> int:
        return next(index for index, state in enumerate(self.rows) if state.row is row)

    # Prompts.

    def prefill(self, chunks: list[list[int]], shape: tuple[int, int] | None) -> None:
        """Compute a chunk of each prompt.

        Args:
            chunks: The next tokens of each row.
            shape: See `compute_chunks`.
        """
        self._caches = compute_chunks(self._model, self._caches, chunks, shape)
        for state, chunk in zip(self.rows, chunks, strict=True):
            state.tokens += chunk

    def start_decoding(self) -> None:
        """Start to evaluate the first token of each row. The prompts lack only their last token."""
        self._newest = mx.array([state.prompt[-1] for state in self.rows])
        self._handles = [None] * len(self.rows)
        self._step()

    # Answers. Rows receive their tokens while the next step is evaluated, or before it starts.

    def decode(self) -> list[Row]:
        """Compute a step, and return the rows. Each gets a token, unless `deliver` has just given it that token."""
        self.has_new_rows = False
        if all(state.row.remaining_tokens == 1 and not state.is_delivered for state in self.rows):
            return self.deliver()  # no row needs another token
        newest, handles = self._newest, self._handles
        try:
            tokens = self._step()
        except BaseException:
            self._append(_to_list(newest), handles)  # computed before: perhaps the cause
            raise
        self._append(tokens, handles)
        for state in self.rows:
            state.is_delivered = False
        return [state.row for state in self.rows]

    def deliver(self) -> list[Row]:
        """Wait for the newest tokens, give each row its token, and return the rows. Starts no step."""
        self._append(_to_list(self._newest), self._handles)
        return [state.row for state in self.rows]

    def _step(self) -> list[int]:
        """Start to evaluate the next token of each row, and return the tokens before them."""
        newest = self._newest
        assert newest is not None
        if self._sample is None:
            self._sample = StepSampler(self.rows, *self._sampling)
        logits = self._model(newest[:, None], cache=self._caches)[:, -1, :]
        self._newest, self._handles = self._sample(logits, newest)
        tokens = _to_list(newest)
        for state, token in zip(self.rows, tokens, strict=True):
            state.tokens.append(token)
        return tokens

    def _append(self, tokens: list[int], handles: list[LogprobHandle | None]) -> None:
        """Give its token to each row that does not have it. A row that ends does not count as having it."""
        for state, token, handle in zip(self.rows, tokens, handles, strict=True):
            state.is_delivered = state.is_delivered or state.row.append_token(token, handle)


def _to_list(tokens: mx.array | None) -> list[int]:
    listed: Any = [] if tokens is None else tokens.tolist()
    return listed
