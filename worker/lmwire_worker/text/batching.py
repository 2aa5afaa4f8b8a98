"""Continuous batching on top of mlx-lm's generator, and the one module that touches that library's internals.

mlx-lm (0.32) samples row by row when rows have different samplers, and computes, splits and evaluates full
log-probabilities for every row of every step. The subclasses here sample all rows in one pass and compute nothing
that nobody asked for, which makes them faster than the generator that they build on. Its prompt queue, its caches
and its one-step-ahead evaluation are used as they are.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import BatchGenerator, GenerationBatch, PromptProcessingBatch
from mlx_lm.models.cache import BatchKVCache, BatchRotatingKVCache, CacheList, KVCache, make_prompt_cache

from lmwire_protocol.commands import Generation

from .constraints import Constraint, Masks
from .logprobs import Handle, Logprobs
from .penalties import EndBan, Penalties
from .sampling import BatchSampler

LONGEST_SLICE: Final = 2048
"""Tokens of one prompt processed in one step, at most."""
TRIAL_LENGTHS: Final = (3, 11, 6)
TRIAL_TOKENS: Final = 100
"""Every vocabulary has so many."""
ROUNDING: Final = 0.2
"""By how many standard deviations of the logits rounding moves one, at most; padding that is not hidden moves more."""


class Row(Protocol):
    """A request as the batch sees it."""

    request: Generation
    seed: int
    prompt: list[int]
    constraint: Constraint | None

    def push(self, token: int, logprob: Handle | None) -> bool:
        """Takes the row's next token. False: that was its last, and the row leaves the batch."""
        ...


class Generator(BatchGenerator):
    """A batch of rows. Each `advance()` is one token for every running row and one slice for every prompt in work.

    Args:
        model: What mlx-lm loaded.
        rows: Decoded together, at most.
        prompts: Processed together, at most.
        ends: The model's end-of-turn tokens.
    """

    def __init__(self, model: nn.Module, rows: int, prompts: int, ends: set[int]) -> None:
        table = _Table(ends)
        super().__init__(
            model,
            sampler=table,
            completion_batch_size=rows,
            prefill_batch_size=prompts,
            prefill_step_size=LONGEST_SLICE,
        )
        self._rows = table.rows
        self._prompt_batch = _Prompts.empty(model, table, prefill_step_size=LONGEST_SLICE)
        self._generation_batch = _Rows.empty(model, table)

    def add(self, row: Row, prompt: list[int]) -> int:
        """Queues a row and returns its uid."""
        return self._insert(row, prompt, make_prompt_cache(self.model), [])

    def join(self, row: Row, tokens: list[int], cache: list[Any]) -> int:
        """Puts a row first in the queue whose cache holds all of its tokens but the last, and returns its uid.

        The cache is the row's own from now on.
        """
        uid = self._insert(row, tokens[-1:], cache, tokens[:-1])
        self._unprocessed_sequences.rotate(1)
        return uid

    def cache_of(self, uid: int) -> list[Any]:
        """A copy of what a row's cache holds; the row's prompt is done but for its last token."""
        batch = self._prompt_batch
        index = batch.uids.index(uid)
        cache = [_row_of(layer, index) for layer in batch.prompt_cache]
        mx.eval([layer.state for layer in cache])  # it would hold the whole batch otherwise
        return cache

    def _insert(self, row: Row, tokens: list[int], cache: list[Any], held: list[int]) -> int:
        for layer in cache:
            layer.merge = _merge
        (uid,) = self.insert([tokens], caches=[cache], all_tokens=[held])
        self._rows[uid] = row
        return uid

    def drop(self, uid: int) -> None:
        """Forgets a row, wherever it stands."""
        self.remove([uid])
        del self._rows[uid]

    def advance(self) -> tuple[list[PromptProcessingBatch.Response], list[Any]]:
        """One step: how far prompts came, and the rows that got a token."""
        return self.next()

    @property
    def running(self) -> int:
        """Rows whose prompt is done."""
        return len(self._generation_batch)

    @property
    def prompts_in_work(self) -> int:
        """Prompts that the next step processes a slice of."""
        return min(self.prefill_batch_size, len(self._currently_processing) + len(self._unprocessed_sequences))


class _Table:
    """The rows by uid. It travels as the generator's sampler, which every batch object is handed."""

    def __init__(self, ends: set[int]) -> None:
        self.rows: dict[int, Row] = {}
        self.ends = ends

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

    def extend(self, batch: "_Batch") -> None:
        for part in (self, batch) if self.uids else ():
            part.prompt_cache = [_joinable(cache) for cache in part.prompt_cache]
        super().extend(batch)  # pyright: ignore[reportAttributeAccessIssue]

    def filter(self, keep: list[int]) -> None:
        super().filter(keep)  # pyright: ignore[reportAttributeAccessIssue]
        if len(keep) == 1:
            self.prompt_cache = [_single(cache) for cache in self.prompt_cache]


class _Rows(_Batch, GenerationBatch):
    """The running rows."""

    _planned: list[int] | None = None

    def _plan(self) -> None:
        """Prepares the sampling of this composition of rows."""
        self._planned = list(self.uids)
        table: _Table = self.fallback_sampler
        self._rows = rows = [table.rows[uid] for uid in self.uids]
        requests = [row.request for row in rows]
        sampled = [len(history) + 1 - len(row.prompt) for row, history in zip(rows, self.tokens, strict=True)]
        self._penalise = Penalties(requests, self.tokens)
        self._ban = EndBan(requests, sampled, table.ends)
        self._masks = Masks([row.constraint for row in rows])
        self._sample = BatchSampler(requests, [row.seed for row in rows], [len(t) for t in self.tokens], table.ends)
        self._look = Logprobs(requests)

    def _step(self) -> tuple[list[int], list[Any]]:
        """Starts the next token's evaluation and returns the token before it, of each row, and its handle."""
        if self._planned != self.uids:
            self._plan()
        inputs = self._current_tokens = self._next_tokens
        handles = self._next_logprobs  # mlx-lm filters and joins them with the rows
        raw = self.model(inputs[:, None], cache=self.prompt_cache)[:, -1, :]
        logits = self._ban(self._penalise(raw, inputs))
        if not self._masks.idle:
            mx.async_eval(logits)  # runs while the masks are made
            logits = self._masks(logits, inputs.tolist())  # pyright: ignore[reportArgumentType]
        self._next_tokens = self._sample(logits)
        self._next_logprobs = self._look(raw, self._next_tokens)
        mx.async_eval(self._next_tokens, self._look.pending)
        tokens: Any = inputs.tolist()
        for history, token in zip(self.tokens, tokens, strict=True):
            history.append(token)
        return tokens, handles

    def next(self) -> list[Any]:
        """One token for each row; returns the rows (`Row`), of which those that ended have left the batch."""
        if not self.uids:
            return []
        before, handles = self._next_tokens, self._next_logprobs
        try:
            tokens, handles = self._step()
        except Exception:
            if self._planned == self.uids:
                self._push(before.tolist(), handles)  # they were there before the failure, which may come of them
            raise
        rows = self._rows
        keep = self._push(tokens, handles)
        if len(keep) < len(rows):
            for uid in set(self.uids).difference(self.uids[index] for index in keep):
                del self.fallback_sampler.rows[uid]
            self.filter(keep)
        return rows

    def _push(self, tokens: Any, handles: list[Any]) -> list[int]:
        """Gives each row its token; which ones go on."""
        together = zip(self._rows, tokens, handles, strict=True)
        return [index for index, (row, token, handle) in enumerate(together) if row.push(token, handle)]


class _Prompts(_Batch, PromptProcessingBatch):
    """The prompts in work."""

    def split(self, indices: list[int]) -> "_Prompts":
        """Parts with some prompts. mlx-lm copies all caches for that, which needs no copy when all leave."""
        if len(indices) < len(self.uids):
            return super().split(indices)
        leaving = copy.copy(self)
        self.__dict__.update(self.empty(self.model, self.fallback_sampler, self.prefill_step_size).__dict__)
        return leaving

    def generate(self, tokens: list[list[int]]) -> _Rows:
        """Makes running rows of prompts that miss their last token only."""
        return _Rows(
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


def batches(model: nn.Module) -> bool:
    """Whether several rows can run together: some caches cannot be joined, and would spoil the whole batch."""
    return all(hasattr(cache, "merge") for cache in _parts(make_prompt_cache(model)))


def prefill(model: nn.Module, tokens: list[int]) -> list[Any]:
    """A cache that holds all of the tokens but the last, which is tried out."""
    cache = make_prompt_cache(model)
    for start in range(0, len(tokens) - 1, LONGEST_SLICE):
        model(mx.array([tokens[start : min(start + LONGEST_SLICE, len(tokens) - 1)]]), cache=cache)
        mx.eval([layer.state for layer in cache])
    mx.eval(model(mx.array([tokens[-1:]]), cache=copy.deepcopy(cache)))
    return cache


def takes_padding(model: nn.Module) -> bool:
    """Whether prompts of different lengths can be processed together, tried out on three.

    Recurrent caches can be joined and yet not hide padding, and a model's own code may not keep to the caches' masks.
    The trial compares logits and not tokens: on a GPU a batch is rounded otherwise than a row alone, and rounding
    decides between tokens that are about as probable.
    """
    if not all(type(layer) is KVCache for layer in make_prompt_cache(model)):
        return False
    prompts = [[(7 * length + index) % TRIAL_TOKENS for index in range(length)] for length in TRIAL_LENGTHS]
    together = _next_logits(model, prompts)
    alone = mx.concatenate([_next_logits(model, [prompt]) for prompt in prompts])
    difference = mx.abs(together - alone).max(axis=-1)
    return bool(mx.all(difference < ROUNDING * mx.std(alone, axis=-1)).item())


def _next_logits(model: nn.Module, prompts: list[list[int]]) -> mx.array:
    """[B, V]: what follows each prompt, by way of mlx-lm's own padding."""
    caches = [make_prompt_cache(model) for _ in prompts]
    batch = PromptProcessingBatch(model, list(range(len(prompts))), caches)
    batch.prompt([prompt[:-1] for prompt in prompts])
    last = mx.array([prompt[-1] for prompt in prompts])
    return model(last[:, None], cache=batch.prompt_cache)[:, -1, :].astype(mx.float32)


def _parts(caches: Iterable[Any]) -> Iterator[Any]:
    for cache in caches:
        if isinstance(cache, CacheList):
            yield from _parts(cache.caches)
        else:
            yield cache


def _merge(caches: list[Any]) -> Any:
    """Stands in for a new cache's `merge`, which would give a row that is alone its batched form."""
    return caches[0] if len(caches) == 1 else type(caches[0]).merge(caches)


def _joinable(cache: Any) -> Any:
    if isinstance(cache, CacheList):
        return CacheList(*map(_joinable, cache.caches))
    return cache if hasattr(cache, "extend") else type(cache).merge([cache])


def _row_of(cache: Any, index: int) -> Any:
    """A copy of one row's part."""
    if isinstance(cache, CacheList):
        return CacheList(*(_row_of(part, index) for part in cache.caches))
    return cache.extract(index) if hasattr(cache, "extract") else copy.deepcopy(cache)


def _single(cache: Any) -> Any:
    if isinstance(cache, CacheList):
        return CacheList(*map(_single, cache.caches))
    batched = isinstance(cache, BatchKVCache | BatchRotatingKVCache)
    return cache.extract(0) if batched and cache.keys is not None else cache  # empty ones cannot be extracted
