"""Groups of rows that compute a chunk of each prompt, or a step of each answer, with one cache for all."""

import copy
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import ArraysCache, make_prompt_cache

from ..caches import (
    Checkpoint,
    RowCache,
    copy_row,
    evaluate,
    flatten_caches,
    keep_rows,
    merge_caches,
    to_batched,
    to_single,
)
from ..padded_cache import PaddedKVCache
from ..sampling.logprobs import LogprobHandle
from .decoding import Decoding
from .rows import Row, RowState
from .step_sampler import StepSampler
from .step_speeds import StepWatch

if TYPE_CHECKING:
    from .continuations import Continuation, Sampler
    from .uneven import Columns


class RowGroup:
    """Rows with one cache for all: prompts that are prefilled, or answers that are decoded.

    While there is one row, its cache keeps its single form, which is faster, and exact.

    Args:
        model: The network.
        decoding: How the batch decodes.
        rows: The first rows. The group takes their caches over.
    """

    def __init__(self, model: nn.Module, decoding: Decoding, rows: Collection[RowState] = ()) -> None:
        self.rows = list(rows)
        self.has_new_rows = False
        """True if answers have joined since the last step."""
        self._model = model
        self._decoding = decoding
        self._caches: list[Any] = merge_caches([state.cache for state in rows])
        self._columns: Columns | None = None
        """The places of the tokens in the caches, while these have their uneven form."""
        for state in rows:
            state.cache = []
        self._newest: mx.array | None = None
        """The tokens [B] that the next step reads; None for prompts."""
        self._handles: list[LogprobHandle | None] = []
        """Their log-probability handles."""
        self._sample: Sampler | None = None
        """The sampler of these rows; None until the next step."""
        self._watch: StepWatch | None = None
        """Measures the steps of these rows, where a wider one may come; None until the next step."""

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
        self._make_even()
        other._make_even()
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
        self._sample = self._watch = None

    def take(self, rows: Collection[Row]) -> "RowGroup":
        """Remove rows, and return them as a group."""
        taken = RowGroup(self._model, self._decoding)
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
        if indices:
            self._make_even()
        self.rows = [self.rows[index] for index in indices]
        self._sample = self._watch = None
        if not indices:
            self._caches, self._columns, self._newest, self._handles = [], None, None, []
            return
        for cache in self._caches:
            keep_rows(cache, indices)
        if len(indices) == 1:
            self._caches = [to_single(cache) for cache in self._caches]
        if self._newest is not None:
            self._newest = self._newest[mx.array(indices)]
            self._handles = [self._handles[index] for index in indices]

    # Their caches.

    def _make_even(self) -> None:
        """Give the caches a form without holes."""
        if self._columns is not None:
            from .uneven import to_even

            self._caches = to_even(self._caches, self._columns, [len(state.tokens) for state in self.rows])
            self._columns = None

    def checkpoint(self, row: Row) -> Checkpoint | None:
        """Return the cache of a row; None if it is empty or incomplete."""
        self._make_even()
        index = self._index(row)
        tokens = self.rows[index].tokens
        cache = RowCache(self._caches, index, len(tokens))
        return Checkpoint(tokens, cache) if tokens and cache.complete else None

    def copy_cache(self, row: Row) -> list[Any]:
        """Return a copy of the cache of a row."""
        self._make_even()
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
        decoding = self._decoding
        has_grammar = any(state.row.constraint is not None for state in self.rows)
        if not (has_grammar or decoding.looks_up or decoding.draft is not None):
            return self._step_once()
        if decoding.speeds is None:
            return self._step_far(has_grammar)
        self._watch = self._watch or StepWatch(decoding.speeds)
        with self._watch:
            return self._step_far(has_grammar)

    def _step_once(self) -> list[int]:
        """Make a step of one token for each row."""
        newest = self._newest
        assert newest is not None
        if self._sample is None:
            self._sample = StepSampler(self._decoding, self.rows)
        logits = self._model(newest[:, None], cache=self._caches)[:, -1, :]
        following, handles = self._sample(logits, newest)
        tokens = self._read_newest()
        self._newest, self._handles = following, handles
        for state, token in zip(self.rows, tokens, strict=True):
            state.tokens.append(token)
        self._note_step([1] * len(tokens), 1)
        return tokens

    def _read_newest(self) -> list[int]:
        """Wait for the newest tokens."""
        tokens = _to_list(self._newest)
        if self._watch is not None:
            self._watch.know()
        return tokens

    def _step_far(self, has_grammar: bool) -> list[int]:
        """Make a step of several tokens for some rows if that is worth it, and else of one for each."""
        if found := self._find_continuations(has_grammar):
            return self._step_over(found)
        return self._step_once()

    def _find_continuations(self, has_grammar: bool) -> "list[Continuation]":
        """Return what may follow the newest token of each row; nothing if no row gets more than a token."""
        decoding = self._decoding
        room = self._room
        if not room:
            return []
        from .continuations import find_continuations

        searched = has_grammar or decoding.looks_up
        found = find_continuations(self.rows, self._read_newest, room, decoding) if searched else []
        return self._propose(room) if decoding.draft is not None and not found else found

    def _propose(self, room: int) -> "list[Continuation]":
        """Return what the draft model proposes for each row; nothing if it proposes nothing."""
        from .continuations import Continuation, wanted_proposals

        wanted = wanted_proposals(self.rows, room, self._decoding)
        if not wanted:
            return []
        if len(self.rows) > 1:
            self._make_uneven()
        self._read_newest()  # what follows belongs to the next step
        assert self._decoding.draft is not None and self._newest is not None
        proposed = self._decoding.draft.propose(self._newest, self._caches, max(wanted), self._columns)
        return [Continuation(tokens[:count]) for tokens, count in zip(proposed, wanted, strict=True)]

    @property
    def _room(self) -> int:
        """Maximum number of tokens that may follow each row's newest one in a step."""
        return self._decoding.room(len(self.rows), max(len(state.tokens) for state in self.rows))

    def _step_over(self, found: "list[Continuation]") -> list[int]:
        """Start to evaluate the tokens after those that follow the newest ones, and return the tokens before them."""
        from .continuations import note_proposals, sample_after

        newest = self._read_newest()
        lines = [[token, *after.tokens] for token, after in zip(newest, found, strict=True)]
        width = max(map(len, lines))
        if len(lines) > 1:
            width = min(1 << (width - 1).bit_length(), self._room + 1)  # a GPU compiles kernels for each width
            self._make_uneven()
        padded = [line + line[-1:] * (width - len(line)) for line in lines]
        draft = self._decoding.draft
        is_read_by_draft = draft is not None and not any(after.is_forced for after in found)
        compute = draft.verify if draft is not None and is_read_by_draft else self._model
        logits = compute(mx.array(padded), cache=self._caches)
        new_sampler = partial(StepSampler, self._decoding)
        ends = self._decoding.eos_token_ids
        sampled = sample_after(self.rows, newest, found, logits, self._sample, new_sampler, ends)
        self._newest, self._handles, counts, self._sample = sampled
        note_proposals(self.rows, found, counts)
        if self._columns is None and (wrong := width - counts[0]):
            for cache in self._caches:
                cache.trim(wrong)
        self._note_step(counts, width)
        return newest

    def _make_uneven(self) -> None:
        """Give the caches a form whose rows may grow by different numbers of tokens."""
        from .uneven import to_uneven

        if self._columns is None:
            self._caches, self._columns = to_uneven(self._caches)

    def _note_step(self, counts: list[int], width: int) -> None:
        """Keep the first tokens of each row that a step has computed, in uneven caches.

        Args:
            counts: Number of tokens of each row to keep.
            width: Number of tokens of each row that the step computed.
        """
        if self._watch is not None:
            self._watch.start(len(counts), width)
        if self._columns is None:
            return
        from .uneven import MAX_HOLES

        self._columns.advance(counts)
        if self._columns.count - max(len(state.tokens) for state in self.rows) > MAX_HOLES:
            self._make_even()

    def _append(self, tokens: list[int], handles: list[LogprobHandle | None]) -> None:
        """Give its token to each row that does not have it, and those after it.

        A row that ends does not count as having it.
        """
        for state, token, handle in zip(self.rows, tokens, handles, strict=True):
            state.is_delivered = state.is_delivered or state.row.append_token(token, handle)
            for more in state.following:
                state.is_delivered = state.is_delivered and state.row.append_token(
                    more.token, more.logprob, drafted=more.drafted
                )
            state.following = []


def _to_list(tokens: mx.array | None) -> list[int]:
    listed: Any = [] if tokens is None else tokens.tolist()
    return listed


# A chunk of each prompt: how much at once, in which shape, and with how much padding.

MAX_CHUNK_TOKENS: Final = 2048
"""Maximum tokens of one prompt in one pass."""
MAX_CPU_TOKENS: Final = 512
"""Maximum tokens computed at once on a CPU, over all prompts: the activations of more exceed its caches."""
MAX_SPARE_BYTES: Final = 64 << 20
"""Freed memory that MLX may keep after a chunk, in bytes. On a CPU, short prompts are slower if the system has to give
the memory anew. The chunks of large models use more, and return all of it."""


def compute_chunks(
    model: nn.Module, caches: list[Any], chunks: list[list[int]], shape: tuple[int, int] | None = None
) -> list[Any]:
    """Compute a chunk of each prompt, and return the caches with it.

    Padding follows a chunk, so that the chunk's tokens do not attend to it. Afterwards it precedes the row's tokens,
    or is removed where all rows have it.

    Args:
        model: The network.
        caches: The caches of the rows, which this function takes over. With a shape, they are plain KV caches.
        chunks: The tokens of each row.
        shape: Rows and tokens of each that the model computes, no fewer than there are; None for as many as there are.
    """
    lengths = [len(chunk) for chunk in chunks]
    longest = max(lengths)
    rows, width = shape or (len(chunks), longest)
    added = rows - len(chunks)
    padded = len(set(lengths)) > 1
    if added or padded:
        caches = [to_batched(cache) for cache in caches]
    if added:
        for cache in caches:
            cache.extend(PaddedKVCache([0] * added))
    lengths += [longest] * added
    at_once = width if shape else _tokens_at_once(rows)
    if padded:
        width += width % at_once == 1  # mlx-lm's rotating cache takes a single column for a decode step
        for cache in caches:
            cache.prepare(lengths=lengths, right_padding=[width - length for length in lengths])
    tokens = mx.array([chunk + [0] * (width - len(chunk)) for chunk in [*chunks, *[[]] * added]])
    states = [cache for cache in flatten_caches(caches) if isinstance(cache, ArraysCache)]
    for start in range(0, width, at_once):
        for cache in states if padded else ():  # mlx-lm's state-space layers read no length beyond their input
            cache.prepare(lengths=[min(max(length - start, 0), at_once) for length in lengths])
        model(tokens[:, start : start + at_once], cache=caches)
        if start + at_once < width:
            evaluate(caches)
    for cache in caches if padded else states:  # a merge announces padding to states, for which each step had a mask
        cache.finalize()
    for cache in caches:
        if width > longest and not padded:
            cache.trim(width - longest)
        if added:
            cache.truncate(len(chunks))
    evaluate(caches)
    if not shape and mx.get_cache_memory() > MAX_SPARE_BYTES:  # rounded shapes take the same memory again
        mx.clear_cache()
    return caches


def prefill(model: nn.Module, tokens: list[int], cache: list[Any] | None = None, cached_tokens: int = 0) -> list[Any]:
    """Return a cache with all tokens but the last. The last one is computed on a copy, to detect errors.

    Args:
        model: The network.
        tokens: The tokens.
        cache: The cache of the first `cached_tokens` tokens, which this function takes over; None for an empty one.
        cached_tokens: Number of tokens in the cache.
    """
    cache = cache or make_prompt_cache(model)
    for start in range(cached_tokens, len(tokens) - 1, MAX_CHUNK_TOKENS):
        model(mx.array([tokens[start : min(start + MAX_CHUNK_TOKENS, len(tokens) - 1)]]), cache=cache)
        evaluate(cache)
    mx.eval(model(mx.array([tokens[-1:]]), cache=copy.deepcopy(cache)))
    return cache


def _tokens_at_once(prompts: int) -> int:
    """Return the maximum tokens of each of `prompts` prompts that are computed at once."""
    return max(1, MAX_CPU_TOKENS // prompts) if mx.default_device() == mx.cpu else MAX_CHUNK_TOKENS
