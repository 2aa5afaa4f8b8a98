"""The batch as a whole: its queue of prompts, and the rows that run."""

import itertools
from collections import deque
from collections.abc import Collection
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import BatchGenerator, PromptProcessingBatch
from mlx_lm.models.cache import make_prompt_cache

from .caches import MAX_CHUNK_TOKENS, copy_row, merge_rows
from .rows import DecodeBatch, PrefillBatch, Row, RowTable, offer_cache
from .shape_rounding import compiles_each_shape, round_shape

CLEAR_INTERVAL: Final = 512
"""Every so many steps what MLX keeps of freed memory is given back, as mlx-lm does it."""

PromptProgress = PromptProcessingBatch.Response


class ContinuousBatch(BatchGenerator):
    """A batch of rows: `decode()` gives each running row a token, `prefill()` processes a slice of each prompt in work.

    Prompts are in work from `take_up()` on, and their rows run from `begin()` on.

    Args:
        model: What mlx-lm loaded.
        prompts: Processed together, at most.
        ends: The model's end-of-turn tokens.
        structural: Tokens that XTC leaves alone.
        positions: Of tokens that the model knows. Padding has none beyond them.
        first_uid: The uid of the first row.
    """

    def __init__(
        self,
        model: nn.Module,
        prompts: int,
        ends: set[int],
        structural: set[int],
        positions: int,
        *,
        first_uid: int = 0,
    ) -> None:
        table = RowTable(ends, structural)
        super().__init__(model, sampler=table)
        self._most_prompts = prompts
        self._positions = positions
        self._few_shapes = prompts > 1 and compiles_each_shape()
        self._decoded = 0
        """Steps."""
        self._uid_count = first_uid
        self._rows = table.rows
        self._prompt_batch = self._no_prompts()
        self._generation_batch: DecodeBatch = DecodeBatch.empty(model, table)
        self._begun = False
        """Whether rows have begun since the last step."""

    def add(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any] | None = None,
        held: int = 0,
        borders: Collection[int] = (),
    ) -> int:
        """Queues a row and returns its uid.

        Args:
            row: The row, which is asked at the borders, behind its prompt but for the last token and when it leaves
                whether it wants to keep what has been computed.
            prompt: Its tokens.
            cache: What is known of it, as the row's own; nothing when None.
            held: How many of the prompt's tokens the cache holds, of which at least one is left.
            borders: Between which tokens the prompt's slices end, besides.
        """
        stops = sorted({border for border in borders if held < border < len(prompt)} | {len(prompt) - 1, len(prompt)})
        segments = [prompt[start:stop] for start, stop in itertools.pairwise([held, *stops])]
        return self._insert(row, segments, cache or make_prompt_cache(self.model), prompt[:held])

    def add_prefilled(self, row: Row, tokens: list[int], cache: list[Any]) -> int:
        """Puts a row first in the queue whose cache holds all of its tokens but the last, and returns its uid.

        The cache is the row's own from now on.
        """
        uid = self._insert(row, [tokens[-1:]], cache, tokens[:-1])
        self._unprocessed_sequences.rotate(1)
        return uid

    def cache_of(self, uid: int) -> list[Any]:
        """A copy of what a row's cache holds; the row's prompt is done but for its last token."""
        batch = self._prompt_batch
        index = batch.uids.index(uid)
        cache = [copy_row(layer, index) for layer in batch.prompt_cache]
        mx.eval([layer.state for layer in cache])  # it would hold the whole batch otherwise
        return cache

    def _insert(self, row: Row, segments: list[list[int]], cache: list[Any], held: list[int]) -> int:
        for layer in cache:
            layer.merge = merge_rows
        (uid,) = self.insert_segments([segments], caches=[cache], all_tokens=[held])
        self._rows[uid] = row
        return uid

    def drop(self, uid: int) -> None:
        """Forgets a row, wherever it stands."""
        for batch in (self._prompt_batch, self._generation_batch):
            if uid in batch.uids:
                offer_cache(self._rows[uid], batch, batch.uids.index(uid))
        self.remove([uid])
        del self._rows[uid]

    def start_decoding(self, room: int) -> list[PromptProgress]:
        """Makes running rows of the prompts that miss their last token only, and tells of them.

        Args:
            room: Of the prompts that are not in work, so many at most.
        """
        done = [index for index, (segments, _, _) in enumerate(self._currently_processing) if _remaining(segments) == 1]
        known = [sequence for sequence in self._unprocessed_sequences if _remaining(sequence[1]) == 1][:room]
        if not done and not known:
            return []
        with mx.stream(self._stream):
            batch, prompts = self._part(done) if done else (self._no_prompts(), [])
            if known:
                batch.extend(self._dequeue(known))
                prompts += self._currently_processing[-len(known) :]
                del self._currently_processing[-len(known) :]
            running = batch.generate([segments[0] for segments, _, _ in prompts])
            self._generation_batch.extend(running)
        self._begun = True
        uids = running.uids
        return [
            PromptProgress(uid, (total, total), True, True) for uid, (_, _, total) in zip(uids, prompts, strict=True)
        ]

    def first_tokens(self) -> list[Any]:
        """Where rows have begun since the last step, every running row's next token: the rows.

        A step gives tokens once the one after it has been started. For a first token that is late: it takes time to
        start a step, on a CPU most of the step's.
        """
        if not self._begun or self._generation_batch.delivered:
            return []
        with mx.stream(self._stream):
            return self._generation_batch.deliver()

    def decode(self) -> list[Any]:
        """A step: one token for every running row, unless it has just got that from `first_tokens`. The rows."""
        self._begun = False
        self._decoded += 1
        if self._decoded % CLEAR_INTERVAL == 0:
            mx.clear_cache()
        with mx.stream(self._stream):
            return self._generation_batch.next()

    def admit_prompts(self, enough: int, room: int) -> int:
        """Begins with prompts, and returns how many are in work.

        Args:
            enough: Tokens that those in work may have left, all together. One prompt may have more.
            room: So many prompts begin, at most.
        """
        in_work = len(self._currently_processing)
        tokens = sum(_remaining(segments) for segments, _, _ in self._currently_processing)
        begun: list[Any] = []
        for sequence in self._unprocessed_sequences:
            if (left := _remaining(sequence[1])) == 1:
                continue
            full = len(begun) >= min(self._most_prompts - in_work, room)
            if full or (tokens and tokens + left > enough):
                break
            begun.append(sequence)
            tokens += left
        if begun:
            with mx.stream(self._stream):
                self._prompt_batch.extend(self._dequeue(begun))
        return in_work + len(begun)

    def prefill(self, size: int) -> list[PromptProgress]:
        """A slice of every prompt in work, none longer than `size` tokens; how far each came."""
        slices, progress = [], []
        for uid, prompt in zip(self._prompt_batch.uids, self._currently_processing, strict=True):
            segments, done, total = prompt
            tokens, segments[0] = segments[0][:size], segments[0][size:]
            at_border = not segments[0]
            if at_border:
                del segments[0]
            prompt[1] = done + len(tokens)
            slices.append(tokens)
            progress.append(PromptProgress(uid, (prompt[1], total), at_border, False))
        with mx.stream(self._stream):
            self._process(slices)
        for index, prompt in enumerate(progress):
            if prompt.end_of_segment:
                offer_cache(self._rows[prompt.uid], self._prompt_batch, index)
        return progress

    def _process(self, slices: list[list[int]]) -> None:
        """Processes a slice of every prompt in work, in a shape that recurs where that saves time."""
        held = max(map(len, self._prompt_batch.tokens))
        rows, length = round_shape(len(slices), max(map(len, slices)), held)
        if self._few_shapes and held + length <= self._positions:
            self._prompt_batch.prompt_in_shape(slices, rows, length)
        else:
            self._prompt_batch.prompt(slices)

    def _part(self, indices: list[int]) -> tuple[PrefillBatch, list[Any]]:
        """Parts with some of the prompts in work."""
        prompts = [self._currently_processing[index] for index in indices]
        self._currently_processing = [
            prompt for index, prompt in enumerate(self._currently_processing) if index not in indices
        ]
        return self._prompt_batch.split(indices), prompts

    def _dequeue(self, sequences: list[Any]) -> PromptProcessingBatch:
        """Takes prompts out of the queue."""
        uids = {sequence[0] for sequence in sequences}
        others = [sequence for sequence in self._unprocessed_sequences if sequence[0] not in uids]
        self._unprocessed_sequences = deque([*sequences, *others])
        return self._make_batch(len(sequences))

    def _no_prompts(self) -> PrefillBatch:
        return PrefillBatch.empty(self.model, self.sampler, prefill_step_size=MAX_CHUNK_TOKENS)

    def contains(self, uid: int) -> bool:
        """Whether a row is here, wherever it stands."""
        return uid in self._rows

    def move_from(self, other: "ContinuousBatch", uids: Collection[int]) -> None:
        """Takes running rows over from another generator."""
        for uid in uids:
            self._rows[uid] = other._rows.pop(uid)
        with mx.stream(self._stream):
            self._generation_batch.extend(other._generation_batch.split(uids))

    @property
    def lengths(self) -> dict[int, int]:
        """Tokens of each running row, by uid."""
        batch = self._generation_batch
        return {uid: len(tokens) for uid, tokens in zip(batch.uids, batch.tokens, strict=True)}

    @property
    def running(self) -> int:
        """Rows whose prompt is done."""
        return len(self._generation_batch)

    @property
    def active(self) -> int:
        """Rows that run or whose prompt is in work."""
        return self.running + len(self._currently_processing)

    @property
    def longest_remaining(self) -> int:
        """Tokens that the longest of the prompts in work misses, but for its last one."""
        return max((_remaining(segments) - 1 for segments, _, _ in self._currently_processing), default=0)

    @property
    def has_prompts(self) -> bool:
        """Whether there are prompts that miss more than their last token."""
        waiting = (sequence[1] for sequence in self._unprocessed_sequences)
        work = (segments for segments, _, _ in self._currently_processing)
        return any(_remaining(segments) > 1 for segments in itertools.chain(work, waiting))


def _remaining(segments: list[list[int]]) -> int:
    """Tokens of a prompt that are not processed."""
    return sum(map(len, segments))
