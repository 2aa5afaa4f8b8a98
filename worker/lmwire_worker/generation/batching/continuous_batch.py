"""A batch that prompts join and answers leave at any step, on top of mlx-lm's generator."""

import itertools
from collections import deque
from collections.abc import Collection
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import BatchGenerator, PromptProcessingBatch
from mlx_lm.models.cache import make_prompt_cache

from .caches import MAX_CHUNK_TOKENS, copy_row
from .row_cache import Checkpoint
from .rows import DecodeBatch, PrefillBatch, Row, RowTable
from .shape_rounding import compiles_each_shape, round_shape

CLEAR_INTERVAL: Final = 512
"""Steps between two releases of freed memory, as in mlx-lm."""

PromptProgress = PromptProcessingBatch.Response


class ContinuousBatch(BatchGenerator):
    """A batch of rows. `prefill` computes a chunk of each admitted prompt; `decode` gives each running row a token.

    A row is queued (`add`), then prefilled (`admit_prompts`), then decoded (`start_decoding`), until `drop`.

    Args:
        model: The network.
        prompts: Maximum number of prompts prefilled together.
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
        positions: Maximum number of positions of the model. Padding never exceeds it.
        first_uid: The uid of the first row.
    """

    def __init__(
        self,
        model: nn.Module,
        prompts: int,
        eos_token_ids: set[int],
        xtc_special_tokens: set[int],
        positions: int,
        *,
        first_uid: int = 0,
    ) -> None:
        table = RowTable(eos_token_ids, xtc_special_tokens)
        super().__init__(model, sampler=table)
        self._max_prompts = prompts
        self._positions = positions
        self._rounds_shapes = prompts > 1 and compiles_each_shape()
        self._steps = 0
        self._uid_count = first_uid
        self._rows = table.rows
        self._prompt_batch = self._no_prompts()
        self._generation_batch: DecodeBatch = DecodeBatch.empty(model, table)
        self._has_new_rows = False
        """True if rows have started to decode since the last step."""

    # Rows come and go.

    def add(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any] | None = None,
        prefix_tokens: int = 0,
        checkpoints: Collection[int] = (),
    ) -> int:
        """Queue a row, and return its uid.

        Args:
            row: Receives the tokens.
            prompt: The prompt's tokens.
            cache: The cache of the prompt's first tokens, which the row takes over; None for an empty one.
            prefix_tokens: Number of tokens in the cache. At least one token of the prompt remains.
            checkpoints: Token counts at which a chunk ends. Chunks also end before and after the last token.
        """
        ends = {end for end in checkpoints if prefix_tokens < end < len(prompt)} | {len(prompt) - 1, len(prompt)}
        segments = [prompt[start:stop] for start, stop in itertools.pairwise([prefix_tokens, *sorted(ends)])]
        return self._insert(row, segments, cache or make_prompt_cache(self.model), prompt[:prefix_tokens])

    def add_prefilled(self, row: Row, tokens: list[int], cache: list[Any]) -> int:
        """Put a row first in the queue whose cache lacks only the last token, and return its uid.

        Args:
            row: Receives the tokens.
            tokens: The row's tokens so far.
            cache: The cache of all tokens but the last, which the row takes over.
        """
        uid = self._insert(row, [tokens[-1:]], cache, tokens[:-1])
        self._unprocessed_sequences.rotate(1)
        return uid

    def copy_cache(self, uid: int) -> list[Any]:
        """Return a copy of the cache of a row whose prompt lacks only its last token."""
        batch = self._prompt_batch
        index = batch.uids.index(uid)
        cache = [copy_row(layer, index) for layer in batch.prompt_cache]
        mx.eval([layer.state for layer in cache])  # otherwise it keeps the whole batch in memory
        return cache

    def checkpoint(self, uid: int) -> Checkpoint | None:
        """Return the cache of a row; None if the row is queued, or its cache is incomplete."""
        for batch in (self._prompt_batch, self._generation_batch):
            if uid in batch.uids:
                return batch.checkpoint(batch.uids.index(uid))
        return None

    def drop(self, uids: Collection[int]) -> None:
        """Remove rows, whether queued, prefilled or decoded."""
        self.remove(list(uids))
        for uid in uids:
            del self._rows[uid]

    def contains(self, uid: int) -> bool:
        """Return whether a row is here, whether queued, prefilled or decoded."""
        return uid in self._rows

    def move_from(self, other: "ContinuousBatch", uids: Collection[int]) -> None:
        """Take running rows over from another batch.

        Args:
            other: The batch that loses the rows.
            uids: The rows.
        """
        for uid in uids:
            self._rows[uid] = other._rows.pop(uid)
        with mx.stream(self._stream):
            self._generation_batch.extend(other._generation_batch.split(uids))

    # Prefill.

    def admit_prompts(self, max_tokens: int, max_prompts: int) -> int:
        """Start to prefill queued prompts, and return the number of prompts in work.

        Args:
            max_tokens: Maximum of the remaining tokens of all prompts in work. A single prompt may have more.
            max_prompts: Maximum number of prompts to start.
        """
        in_work = len(self._currently_processing)
        tokens = sum(_remaining(segments) for segments, _, _ in self._currently_processing)
        admitted: list[Any] = []
        for sequence in self._unprocessed_sequences:
            if (remaining := _remaining(sequence[1])) == 1:
                continue
            is_full = len(admitted) >= min(self._max_prompts - in_work, max_prompts)
            if is_full or (tokens and tokens + remaining > max_tokens):
                break
            admitted.append(sequence)
            tokens += remaining
        if admitted:
            with mx.stream(self._stream):
                self._prompt_batch.extend(self._dequeue(admitted))
        return in_work + len(admitted)

    def prefill(self, size: int) -> list[PromptProgress]:
        """Compute a chunk of every prompt in work, at most `size` tokens each, and return their progress.

        Where `end_of_segment` is set, the prompt has reached a checkpoint.
        """
        chunks, progress = [], []
        for uid, prompt in zip(self._prompt_batch.uids, self._currently_processing, strict=True):
            segments, done, total = prompt
            tokens, segments[0] = segments[0][:size], segments[0][size:]
            is_at_checkpoint = not segments[0]
            if is_at_checkpoint:
                del segments[0]
            prompt[1] = done + len(tokens)
            chunks.append(tokens)
            progress.append(PromptProgress(uid, (prompt[1], total), is_at_checkpoint, False))
        with mx.stream(self._stream):
            self._compute(chunks)
        return progress

    def _compute(self, chunks: list[list[int]]) -> None:
        """Compute a chunk of every prompt in work, in a rounded shape if that saves time."""
        cached = max(map(len, self._prompt_batch.tokens))
        rows, length = round_shape(len(chunks), max(map(len, chunks)), cached)
        if self._rounds_shapes and cached + length <= self._positions:
            self._prompt_batch.prompt_in_shape(chunks, rows, length)
        else:
            self._prompt_batch.prompt(chunks)

    # Decode.

    def start_decoding(self, max_rows: int) -> list[PromptProgress]:
        """Start to decode the prompts that lack only their last token, and return their progress.

        Args:
            max_rows: Maximum number of queued prompts to start.
        """
        done = [index for index, (parts, _, _) in enumerate(self._currently_processing) if _remaining(parts) == 1]
        cached = [sequence for sequence in self._unprocessed_sequences if _remaining(sequence[1]) == 1][:max_rows]
        if not done and not cached:
            return []
        with mx.stream(self._stream):
            batch, prompts = self._split_prompts(done) if done else (self._no_prompts(), [])
            if cached:
                batch.extend(self._dequeue(cached))
                prompts += self._currently_processing[-len(cached) :]
                del self._currently_processing[-len(cached) :]
            running = batch.generate([segments[0] for segments, _, _ in prompts])
            self._generation_batch.extend(running)
        self._has_new_rows = True
        return [
            PromptProgress(uid, (total, total), True, True)
            for uid, (_, _, total) in zip(running.uids, prompts, strict=True)
        ]

    def first_tokens(self) -> list[Any]:
        """If rows have started since the last step, give every running row its next token, and return the rows.

        `decode` delivers tokens once it has started the next step. That is late for a first token: on a CPU, the start
        takes most of a step's time.
        """
        if not self._has_new_rows or self._generation_batch.delivered:
            return []
        with mx.stream(self._stream):
            return self._generation_batch.deliver()

    def decode(self) -> list[Any]:
        """Compute a step: one token for every running row, unless `first_tokens` has delivered it. Return the rows."""
        self._has_new_rows = False
        self._steps += 1
        if self._steps % CLEAR_INTERVAL == 0:
            mx.clear_cache()
        with mx.stream(self._stream):
            return self._generation_batch.next()

    # State.

    @property
    def lengths(self) -> dict[int, int]:
        """Tokens of each running row, by uid."""
        batch = self._generation_batch
        return {uid: len(tokens) for uid, tokens in zip(batch.uids, batch.tokens, strict=True)}

    @property
    def running(self) -> int:
        """Number of rows that are decoded."""
        return len(self._generation_batch)

    @property
    def active(self) -> int:
        """Number of rows that are prefilled or decoded."""
        return self.running + len(self._currently_processing)

    @property
    def longest_remaining(self) -> int:
        """Maximum of the remaining tokens of the prompts in work, without their last token."""
        return max((_remaining(segments) - 1 for segments, _, _ in self._currently_processing), default=0)

    @property
    def has_prompts(self) -> bool:
        """True if a prompt lacks more than its last token."""
        queued = (sequence[1] for sequence in self._unprocessed_sequences)
        in_work = (segments for segments, _, _ in self._currently_processing)
        return any(_remaining(segments) > 1 for segments in itertools.chain(in_work, queued))

    # mlx-lm's queue.

    def _insert(self, row: Row, segments: list[list[int]], cache: list[Any], tokens: list[int]) -> int:
        (uid,) = self.insert_segments([segments], caches=[cache], all_tokens=[tokens])
        self._rows[uid] = row
        return uid

    def _split_prompts(self, indices: list[int]) -> tuple[PrefillBatch, list[Any]]:
        """Remove prompts from those in work, and return them."""
        prompts = [self._currently_processing[index] for index in indices]
        self._currently_processing = [
            prompt for index, prompt in enumerate(self._currently_processing) if index not in indices
        ]
        return self._prompt_batch.split(indices), prompts

    def _dequeue(self, sequences: list[Any]) -> PrefillBatch:
        """Take prompts out of the queue."""
        uids = {sequence[0] for sequence in sequences}
        others = [sequence for sequence in self._unprocessed_sequences if sequence[0] not in uids]
        self._unprocessed_sequences = deque([*sequences, *others])
        return self._make_batch(len(sequences))

    def _make_batch(self, n: int) -> PrefillBatch:
        """Take the first `n` prompts out of the queue, as mlx-lm's own method does."""
        sequences = [self._unprocessed_sequences.popleft() for _ in range(n)]
        columns = map(list, zip(*sequences, strict=True))
        uids, segments, max_tokens, caches, tokens, samplers, processors, stops = columns
        self._currently_processing += [[parts, 0, sum(map(len, parts))] for parts in segments]
        return PrefillBatch(
            self.model,
            uids,
            caches,
            tokens=tokens,
            prefill_step_size=self.prefill_step_size,
            samplers=samplers,
            fallback_sampler=self.sampler,
            logits_processors=processors,
            stop_sequences=stops,
            max_tokens=max_tokens,
        )

    def _no_prompts(self) -> PrefillBatch:
        return PrefillBatch.empty(self.model, self.sampler, prefill_step_size=MAX_CHUNK_TOKENS)


def _remaining(segments: list[list[int]]) -> int:
    """Return the number of tokens of a prompt that are not computed."""
    return sum(map(len, segments))
