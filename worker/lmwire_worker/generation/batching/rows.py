"""The rows of a batch: prompts that are prefilled, and answers whose next tokens are sampled in one pass."""

import copy
from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx_lm.generate import GenerationBatch, PromptProcessingBatch

from lmwire_protocol.commands import Generation

from ..sampling.logprobs import BatchLogprobs, LogprobHandle
from ..sampling.penalties import EosBan, Penalties
from ..sampling.sampler import BatchSampler
from ..structured_output import Constraint, TokenMasks
from .caches import append_empty_rows, merge_caches, to_batched, to_single, truncate_rows
from .row_cache import Checkpoint, RowCache

MAX_SPARE_BYTES: Final = 64 << 20
"""Freed memory that MLX may keep after a chunk, in bytes. On a CPU, short prompts are slower if the system has to give
the memory anew. The chunks of large models use more, and return all of it."""
MAX_CPU_TOKENS: Final = 512
"""Maximum tokens computed at once on a CPU, over all prompts: the activations of more exceed its caches."""


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


class StepSampler:
    """Samples the next token of each row. Valid until rows join or leave the batch; each call is a step.

    Args:
        rows: The rows of the batch.
        histories: The tokens of each row, without the newest one, which the next call receives.
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        histories: Sequence[list[int]],
        eos_token_ids: set[int],
        xtc_special_tokens: set[int],
    ) -> None:
        requests = [row.request for row in rows]
        positions = [len(history) for history in histories]
        generated = [position + 1 - len(row.prompt) for row, position in zip(rows, positions, strict=True)]
        self._penalize = Penalties(requests, histories)
        self._ban_eos = EosBan(requests, generated, eos_token_ids)
        self._masks = TokenMasks([row.constraint for row in rows])
        self._sample = BatchSampler(requests, [row.seed for row in rows], positions, xtc_special_tokens)
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


class RowTable:
    """The rows by uid. mlx-lm passes it to every batch object as the generator's sampler.

    Args:
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
    """

    def __init__(self, eos_token_ids: set[int], xtc_special_tokens: set[int]) -> None:
        self.rows: dict[int, Row] = {}
        self.eos_token_ids = eos_token_ids
        self.xtc_special_tokens = xtc_special_tokens

    def __call__(self, logprobs: mx.array) -> mx.array:
        """Raise RuntimeError: this package never samples by mlx-lm."""
        raise RuntimeError(
            "mlx-lm sampled by itself: its batch internals differ from those this module was written for"
        )


class _Batch:
    """Rows that keep the single form of their caches while there is one row: it is faster, and exact."""

    fallback_sampler: Any
    """The `RowTable`."""
    uids: list[int]
    tokens: list[list[int]]
    prompt_cache: list[Any]

    def extend(self, batch: Any) -> None:
        """Append the rows of another batch."""
        for part in (self, batch) if self.uids else ():
            part.prompt_cache = [to_batched(cache) for cache in part.prompt_cache]
        super().extend(batch)  # pyright: ignore[reportAttributeAccessIssue]: mlx-lm's class is the next base

    def checkpoint(self, index: int) -> Checkpoint | None:
        """Return the cache of a row; None if it is empty or incomplete."""
        tokens = self.tokens[index]
        cache = RowCache(self.prompt_cache, index, len(tokens))
        return Checkpoint(tokens, cache) if tokens and cache.complete else None

    def filter(self, keep: list[int]) -> None:
        """Keep the rows with these indices."""
        super().filter(keep)  # pyright: ignore[reportAttributeAccessIssue]: likewise
        if len(keep) == 1:
            self.prompt_cache = [to_single(cache) for cache in self.prompt_cache]


class DecodeBatch(_Batch, GenerationBatch):
    """The rows that are decoded. They receive their tokens while the next step is evaluated, or before it starts."""

    _planned: list[int] | None = None
    """The uids that the sampler was made for."""
    delivered: frozenset[int] = frozenset()
    """The uids of the rows that already have the token with which the next step begins."""

    def extend(self, batch: "DecodeBatch") -> None:
        """Append the rows of another batch."""
        super().extend(batch)
        self.delivered |= batch.delivered

    def _plan(self) -> None:
        """Make the sampler for the rows of this moment."""
        self._planned = list(self.uids)
        table: RowTable = self.fallback_sampler
        self._sample = StepSampler(self._rows, self.tokens, table.eos_token_ids, table.xtc_special_tokens)

    def _step(self) -> tuple[list[int], list[Any]]:
        """Start to evaluate the next tokens; return the tokens before them, with their log-probability handles."""
        if self._planned != self.uids:
            self._plan()
        inputs = self._current_tokens = self._next_tokens
        handles = self._next_logprobs  # mlx-lm filters and joins them with the rows
        raw = self.model(inputs[:, None], cache=self.prompt_cache)[:, -1, :]
        self._next_tokens, self._next_logprobs = self._sample(raw, inputs)
        tokens: Any = inputs.tolist()
        for history, token in zip(self.tokens, tokens, strict=True):
            history.append(token)
        return tokens, handles

    def next(self) -> list[Any]:
        """Compute a step, and return the rows. Each gets a token, unless `deliver` has just given it that token."""
        delivered, self.delivered = self.delivered, frozenset()  # also without rows: a row may come back later
        if not self.uids:
            return []
        rows = self._rows
        if not delivered and all(row.remaining_tokens == 1 for row in rows):
            return self.deliver()  # no row needs another token
        before, handles = self._next_tokens, self._next_logprobs
        try:
            tokens, handles = self._step()
        except BaseException:
            if self._planned == self.uids:
                self._append_tokens(rows, before.tolist(), handles, delivered)  # computed before: perhaps the cause
            raise
        self._append_tokens(rows, tokens, handles, delivered)
        return rows

    def deliver(self) -> list[Any]:
        """Wait for the newest tokens, give each row its token, and return the rows. Starts no step."""
        if not self.uids:
            return []
        rows = self._rows
        continuing = self._append_tokens(rows, self._next_tokens.tolist(), self._next_logprobs, self.delivered)
        self.delivered = frozenset(continuing)
        return rows

    def _append_tokens(self, rows: list[Row], tokens: Any, handles: list[Any], delivered: Collection[int]) -> list[int]:
        """Give its token to each row that does not have it, and return the uids of the rows that continue."""
        return [
            uid
            for uid, row, token, handle in zip(self.uids, rows, tokens, handles, strict=True)
            if uid in delivered or row.append_token(token, handle)
        ]

    @property
    def _rows(self) -> list[Row]:
        table: RowTable = self.fallback_sampler
        return [table.rows[uid] for uid in self.uids]

    def split(self, uids: Collection[int]) -> "DecodeBatch":
        """Remove rows, and return them as another batch."""
        staying = [index for index, uid in enumerate(self.uids) if uid not in uids]
        leaving = [index for index, uid in enumerate(self.uids) if uid in uids]
        part = copy.copy(self)
        if staying:
            part.prompt_cache = copy.deepcopy(self.prompt_cache)  # copies no arrays
            part.filter(leaving)
            self.filter(staying)
        else:
            self.__dict__.update(self.empty(self.model, self.fallback_sampler).__dict__)
        self._planned = None  # the same rows may come back, with more tokens
        return part


class PrefillBatch(_Batch, PromptProcessingBatch):
    """The prompts that are being prefilled.

    Args:
        model: The network.
        uids: The rows' names.
        caches: The caches of each row.
        args: Further arguments of mlx-lm's class.
        options: Further arguments of mlx-lm's class.
    """

    def __init__(self, model: Any, uids: list[int], caches: list[list[Any]], *args: Any, **options: Any) -> None:
        super().__init__(model, uids, [], *args, **options)
        self.prompt_cache = merge_caches(caches)

    def split(self, indices: list[int]) -> "PrefillBatch":
        """Remove prompts, and return them as another batch. Unlike mlx-lm, copy no caches if all prompts leave."""
        if len(indices) < len(self.uids):
            return super().split(indices)
        leaving = copy.copy(self)
        self.__dict__.update(self.empty(self.model, self.fallback_sampler, self.prefill_step_size).__dict__)
        return leaving

    def prompt(self, tokens: list[list[int]]) -> None:
        """Compute a chunk of each prompt. Unlike mlx-lm, keep some freed memory for the next chunk."""
        lengths = [len(chunk) for chunk in tokens]
        longest = max(lengths)
        uneven = [longest - own for own in lengths]
        if any(uneven):
            for cache in self.prompt_cache:
                cache.prepare(lengths=lengths, right_padding=uneven)
        padded = mx.array([chunk + [0] * missing for chunk, missing in zip(tokens, uneven, strict=True)])
        at_once = self._tokens_at_once(len(tokens))
        for start in range(0, longest, at_once):
            self.model(padded[:, start : start + at_once], cache=self.prompt_cache)
            mx.eval([cache.state for cache in self.prompt_cache])
        if any(uneven):
            for cache in self.prompt_cache:
                cache.finalize()
            mx.eval([cache.state for cache in self.prompt_cache])
        self._record(tokens)
        if mx.get_cache_memory() > MAX_SPARE_BYTES:
            mx.clear_cache()

    def prompt_in_shape(self, tokens: list[list[int]], rows: int, length: int) -> None:
        """Compute a chunk of each prompt in a given shape. All caches must be plain KV caches.

        Args:
            tokens: A chunk of each prompt.
            rows: Number of rows, with empty ones that are removed afterwards.
            length: Tokens of each row. Padding follows the chunk, so the chunk's tokens do not attend to it, and is
                removed afterwards.
        """
        lengths = [len(chunk) for chunk in tokens]
        spare = rows - len(tokens)
        uneven = [max(lengths) - own for own in lengths] + [0] * spare
        if spare:
            self.prompt_cache = [append_empty_rows(to_batched(cache), spare) for cache in self.prompt_cache]
        if any(uneven):
            for cache in self.prompt_cache:
                cache.prepare(right_padding=uneven)
        padded = [chunk + [0] * (length - len(chunk)) for chunk in tokens] + [[0] * length] * spare
        self.model(mx.array(padded), cache=self.prompt_cache)
        for cache in self.prompt_cache:
            cache.trim(length - max(lengths))
            if any(uneven):
                cache.finalize()
            if spare:
                truncate_rows(cache, len(tokens))
        mx.eval([cache.state for cache in self.prompt_cache])
        self._record(tokens)

    def generate(self, tokens: list[list[int]]) -> DecodeBatch:
        """Return rows to decode, from prompts that lack only their last token."""
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

    def _tokens_at_once(self, prompts: int) -> int:
        """Return the maximum tokens of each of `prompts` prompts that are computed at once."""
        is_on_cpu = mx.default_device() == mx.cpu
        return max(1, MAX_CPU_TOKENS // prompts) if is_on_cpu else self.prefill_step_size

    def _record(self, chunks: list[list[int]]) -> None:
        """Append the tokens that are computed."""
        for history, chunk in zip(self.tokens, chunks, strict=True):
            history.extend(chunk)
