"""The rows of a batch: prompts in work, and those that run, whose next tokens are sampled in one pass."""

import copy
from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx_lm.generate import GenerationBatch, PromptProcessingBatch

from lmwire_protocol.commands import Generation

from ..sampling.logprobs import BatchLogprobs, LogprobHandle
from ..sampling.penalties import EosBan, Penalties
from ..sampling.sampler import BatchSampler
from ..structured_output import Constraint, Masks
from .caches import append_empty_rows, to_batched, to_single, truncate_rows
from .row_cache import RowCache

MAX_SPARE_BYTES: Final = 64 << 20
"""What MLX keeps of the memory that a slice was processed in: short prompts feel it on a CPU when that is asked of the
system anew. The slices of large models take more, and give all of it back."""
MAX_CPU_TOKENS: Final = 512
"""Tokens of all prompts computed at once on a CPU: what more of them work on no longer fits its caches."""


class Row(Protocol):
    """A request as the batch sees it."""

    request: Generation
    seed: int
    prompt: list[int]
    constraint: Constraint | None

    @property
    def remaining_tokens(self) -> int:
        """Tokens that may still come, at most, besides an end-of-turn token."""
        ...

    def append_token(self, token: int, logprob: LogprobHandle | None) -> bool:
        """Takes the row's next token. False: that was its last, and the row leaves the batch."""
        ...

    def keep(self, tokens: list[int], cache: RowCache) -> None:
        """Takes what it wants of its cache, which holds the tokens and is about to change."""
        ...


class _Rows(Protocol):
    prompt_cache: list[Any]
    tokens: list[list[int]]


def offer_cache(row: Row, batch: _Rows, index: int) -> None:
    """Lets a row take what it wants of its cache, if it is there."""
    tokens = batch.tokens[index]
    cache = RowCache(batch.prompt_cache, index, len(tokens))
    if tokens and cache.complete:
        row.keep(tokens, cache)


class StepSampler:
    """Samples the next token of each row, for one composition of a batch; each call is a step.

    Args:
        rows: What is answered.
        histories: Of each row, prompt and answer so far, without the token that the next call is told.
        ends: The model's end-of-turn tokens.
        structural: Tokens that XTC leaves alone.
    """

    def __init__(
        self, rows: Sequence[Row], histories: Sequence[list[int]], ends: set[int], structural: set[int]
    ) -> None:
        requests = [row.request for row in rows]
        positions = [len(history) for history in histories]
        sampled = [position + 1 - len(row.prompt) for row, position in zip(rows, positions, strict=True)]
        self._penalise = Penalties(requests, histories)
        self._ban = EosBan(requests, sampled, ends)
        self._masks = Masks([row.constraint for row in rows])
        self._sample = BatchSampler(requests, [row.seed for row in rows], positions, structural)
        self._look = BatchLogprobs(requests)

    def __call__(self, raw: mx.array, newest: mx.array) -> tuple[mx.array, list[LogprobHandle | None]]:
        """Logits [B, V] that follow the tokens `newest` [B] → tokens [B], under evaluation, and each row's handle."""
        logits = self._ban(self._penalise(raw, newest))
        if not self._masks.idle:
            if mx.default_device() == mx.cpu:
                mx.async_eval(logits)  # runs while the masks are made; on a GPU a second start costs more than that
            told: Any = newest.tolist()
            logits = self._masks(logits, told)
        tokens = self._sample(logits)
        handles = self._look(raw, tokens)
        mx.async_eval(tokens, self._look.pending)
        return tokens, handles


class RowTable:
    """The rows by uid. It travels as the generator's sampler, which every batch object is handed."""

    def __init__(self, ends: set[int], structural: set[int]) -> None:
        self.rows: dict[int, Row] = {}
        self.eos_token_ids = ends
        self.xtc_special_tokens = structural

    def __call__(self, logprobs: mx.array) -> mx.array:
        raise RuntimeError(
            "mlx-lm sampled by itself: its batch internals differ from those this module was written for"
        )


class _Batch:
    """Rows that keep their caches' single form while there is one: it is faster, and as exact as alone."""

    fallback_sampler: Any
    """The table of rows."""
    uids: list[int]
    prompt_cache: list[Any]

    def extend(self, batch: Any) -> None:
        for part in (self, batch) if self.uids else ():
            part.prompt_cache = [to_batched(cache) for cache in part.prompt_cache]
        super().extend(batch)  # pyright: ignore[reportAttributeAccessIssue]: mlx-lm's class is the next base

    def filter(self, keep: list[int]) -> None:
        super().filter(keep)  # pyright: ignore[reportAttributeAccessIssue]: likewise
        if len(keep) == 1:
            self.prompt_cache = [to_single(cache) for cache in self.prompt_cache]


class DecodeBatch(_Batch, GenerationBatch):
    """The running rows. They get their tokens while the next step is evaluated, or before it."""

    _planned: list[int] | None = None
    delivered: frozenset[int] = frozenset()
    """The rows, by uid, that have the token which the next step begins with."""

    def extend(self, batch: "DecodeBatch") -> None:
        super().extend(batch)
        self.delivered |= batch.delivered

    def _plan(self) -> None:
        """Prepares the sampling of this composition of rows."""
        self._planned = list(self.uids)
        table: RowTable = self.fallback_sampler
        self._choose = StepSampler(self._rows, self.tokens, table.eos_token_ids, table.xtc_special_tokens)

    def _step(self) -> tuple[list[int], list[Any]]:
        """Starts the next token's evaluation and returns the token before it, of each row, and its handle."""
        if self._planned != self.uids:
            self._plan()
        inputs = self._current_tokens = self._next_tokens
        handles = self._next_logprobs  # mlx-lm filters and joins them with the rows
        raw = self.model(inputs[:, None], cache=self.prompt_cache)[:, -1, :]
        self._next_tokens, self._next_logprobs = self._choose(raw, inputs)
        tokens: Any = inputs.tolist()
        for history, token in zip(self.tokens, tokens, strict=True):
            history.append(token)
        return tokens, handles

    def next(self) -> list[Any]:
        """A step: a token for each row that has not got it. Returns the rows; those that ended have left the batch."""
        told, self.delivered = self.delivered, frozenset()  # also where no row is left: one may come back later
        if not self.uids:
            return []
        rows = self._rows
        if not told and all(row.remaining_tokens == 1 for row in rows):
            return self.deliver()  # nobody needs another token
        before, handles = self._next_tokens, self._next_logprobs
        try:
            tokens, handles = self._step()
        except Exception:
            if self._planned == self.uids:
                self._append_tokens(
                    rows, before.tolist(), handles, told
                )  # they were there before: the failure may come of them
            raise
        self._deliver(rows, tokens, handles, told)
        return rows

    def deliver(self) -> list[Any]:
        """Does what `next` does, but waits for the tokens, and starts no step."""
        if not self.uids:
            return []
        rows = self._rows
        self._deliver(rows, self._next_tokens.tolist(), self._next_logprobs, self.delivered)
        self.delivered = frozenset(self.uids)
        return rows

    def _deliver(self, rows: list[Row], tokens: Any, handles: list[Any], told: Collection[int]) -> None:
        """Gives its token to each row that has not been told it. Those that end leave the batch."""
        keep = self._append_tokens(rows, tokens, handles, told)
        if len(keep) < len(rows):
            for index in set(range(len(rows))).difference(keep):
                offer_cache(rows[index], self, index)
                del self.fallback_sampler.rows[self.uids[index]]
            self.filter(keep)

    def _append_tokens(self, rows: list[Row], tokens: Any, handles: list[Any], told: Collection[int]) -> list[int]:
        """Gives its token to each row that has not been told it; which rows go on."""
        together = zip(self.uids, rows, tokens, handles, strict=True)
        return [
            index
            for index, (uid, row, token, handle) in enumerate(together)
            if uid in told or row.append_token(token, handle)
        ]

    @property
    def _rows(self) -> list[Row]:
        table: RowTable = self.fallback_sampler
        return [table.rows[uid] for uid in self.uids]

    def split(self, uids: Collection[int]) -> "DecodeBatch":
        """Parts with some rows."""
        staying = [index for index, uid in enumerate(self.uids) if uid not in uids]
        leaving = [index for index, uid in enumerate(self.uids) if uid in uids]
        part = copy.copy(self)
        if staying:
            part.prompt_cache = copy.deepcopy(self.prompt_cache)  # no arrays are copied
            part.filter(leaving)
            self.filter(staying)
        else:
            self.__dict__.update(self.empty(self.model, self.fallback_sampler).__dict__)
        self._planned = None  # the same rows may come back, with more tokens
        return part


class PrefillBatch(_Batch, PromptProcessingBatch):
    """The prompts in work."""

    def split(self, indices: list[int]) -> "PrefillBatch":
        """Parts with some prompts. mlx-lm copies all caches for that, which needs no copy when all leave."""
        if len(indices) < len(self.uids):
            return super().split(indices)
        leaving = copy.copy(self)
        self.__dict__.update(self.empty(self.model, self.fallback_sampler, self.prefill_step_size).__dict__)
        return leaving

    def prompt(self, tokens: list[list[int]]) -> None:
        """Processes a slice of each prompt, as mlx-lm's own does, which gives all spare memory back after each."""
        lengths = [len(part) for part in tokens]
        longest = max(lengths)
        uneven = [longest - own for own in lengths]
        if any(uneven):
            for cache in self.prompt_cache:
                cache.prepare(lengths=lengths, right_padding=uneven)
        padded = mx.array([part + [0] * missing for part, missing in zip(tokens, uneven, strict=True)])
        at_once = self._computed_at_once(len(tokens))
        for start in range(0, longest, at_once):
            self.model(padded[:, start : start + at_once], cache=self.prompt_cache)
            mx.eval([cache.state for cache in self.prompt_cache])
        if any(uneven):
            for cache in self.prompt_cache:
                cache.finalize()
            mx.eval([cache.state for cache in self.prompt_cache])
        for history, part in zip(self.tokens, tokens, strict=True):
            history.extend(part)
        if mx.get_cache_memory() > MAX_SPARE_BYTES:
            mx.clear_cache()

    def _computed_at_once(self, prompts: int) -> int:
        """Tokens of each of so many prompts, at most."""
        on_cpu = mx.default_device() == mx.cpu
        return max(1, MAX_CPU_TOKENS // prompts) if on_cpu else self.prefill_step_size

    def prompt_in_shape(self, tokens: list[list[int]], rows: int, length: int) -> None:
        """Does what `prompt` does, in a given shape. For plain KV caches.

        It leaves MLX the memory that it worked in, for the next slice, until all of that is given back.

        Args:
            tokens: A slice of each prompt.
            rows: Processed together, with some that are no prompt's and are dropped again.
            length: Tokens of each row. What follows a slice is not seen by its tokens, and is cut off again.
        """
        lengths = [len(part) for part in tokens]
        spare = rows - len(tokens)
        uneven = [max(lengths) - own for own in lengths] + [0] * spare
        if spare:
            self.prompt_cache = [append_empty_rows(to_batched(cache), spare) for cache in self.prompt_cache]
        if any(uneven):
            for cache in self.prompt_cache:
                cache.prepare(right_padding=uneven)
        padded = [part + [0] * (length - len(part)) for part in tokens] + [[0] * length] * spare
        self.model(mx.array(padded), cache=self.prompt_cache)
        for cache in self.prompt_cache:
            cache.trim(length - max(lengths))
            if any(uneven):
                cache.finalize()
            if spare:
                truncate_rows(cache, len(tokens))
        mx.eval([cache.state for cache in self.prompt_cache])
        for history, part in zip(self.tokens, tokens, strict=True):
            history.extend(part)

    def generate(self, tokens: list[list[int]]) -> DecodeBatch:
        """Makes running rows of prompts that miss their last token only."""
        return DecodeBatch(
            self.model,
            self.uids,
            mx.array([last for (last,) in tokens]),
            self.prompt_cache,
            self.tokens,
            self.samplers,
            self.fallback_sampler,
            self.logits_processors,
            self.stop_sequences,
            self.max_tokens,
        )
