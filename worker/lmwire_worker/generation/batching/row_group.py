"""Rows that are computed together."""

import copy
from collections.abc import Collection
from typing import Any

import mlx.core as mx
from mlx import nn

from ..sampling.logprobs import LogprobHandle
from .caches import Checkpoint, RowCache, copy_row, evaluate, merge_caches, to_batched, to_single
from .chunks import compute_chunks
from .rows import Row, RowState, StepSampler


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
