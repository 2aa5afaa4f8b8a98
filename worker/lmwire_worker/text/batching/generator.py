"""The batch as a whole: its queue of prompts, and the rows that run."""

import itertools
from collections.abc import Collection
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import BatchGenerator, PromptProcessingBatch
from mlx_lm.models.cache import make_prompt_cache

from .caches import LONGEST_SLICE, merge_rows, row_of
from .rows import PromptRows, Row, RunningRows, Table, offer

ENOUGH: Final = 512
"""Tokens that the prompts in work have left, which keep most devices busy. One more would be done no sooner than if it
came after them, and they would be done later."""


class Generator(BatchGenerator):
    """A batch of rows. Each `advance()` is one token for every running row and one slice for every prompt in work.

    Args:
        model: What mlx-lm loaded.
        rows: Decoded together, at most.
        prompts: Processed together, at most, as long as all of them have few tokens left.
        ends: The model's end-of-turn tokens.
        structural: Tokens that XTC leaves alone.
        first_uid: The uid of the first row.
    """

    def __init__(
        self,
        model: nn.Module,
        rows: int,
        prompts: int,
        ends: set[int],
        structural: set[int],
        *,
        first_uid: int = 0,
    ) -> None:
        table = Table(ends, structural)
        super().__init__(
            model,
            sampler=table,
            completion_batch_size=rows,
            prefill_batch_size=prompts,
            prefill_step_size=LONGEST_SLICE,
        )
        self._most_prompts = prompts
        self._begun: list[PromptProcessingBatch.Response] = []
        """Prompts that came to their end in this step, before others began."""
        self._uid_count = first_uid
        self._rows = table.rows
        self._prompt_batch = PromptRows.empty(model, table, prefill_step_size=LONGEST_SLICE)
        self._generation_batch: RunningRows = RunningRows.empty(model, table)

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

    def join(self, row: Row, tokens: list[int], cache: list[Any]) -> int:
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
        cache = [row_of(layer, index) for layer in batch.prompt_cache]
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
                offer(self._rows[uid], batch, batch.uids.index(uid))
        self.remove([uid])
        del self._rows[uid]

    def advance(self) -> tuple[list[PromptProcessingBatch.Response], list[Any]]:
        """One step: how far prompts came, and the rows that got a token."""
        self._begun.clear()
        self.prefill_batch_size = self.prompts_in_work + len(self._done())
        progress, rows = self.next()
        for prompt in progress:
            if prompt.end_of_segment and not prompt.end_of_prompt:
                offer(self._rows[prompt.uid], self._prompt_batch, self._prompt_batch.uids.index(prompt.uid))
        return self._begun + progress, rows

    def _make_batch(self, n: int) -> PromptProcessingBatch:
        """The next prompts. Those that are done leave before: mlx-lm would part them by copies of all their caches."""
        if done := self._done():
            prompts = [self._currently_processing[index] for index in done]
            self._currently_processing = [
                prompt for index, prompt in enumerate(self._currently_processing) if index not in done
            ]
            batch = self._prompt_batch.split(done)
            for uid, (_, _, total) in zip(batch.uids, prompts, strict=True):
                self._begun.append(PromptProcessingBatch.Response(uid, (total, total), True, True))
            self._generation_batch.extend(batch.generate([segments[0] for segments, _, _ in prompts]))
        return super()._make_batch(n)

    def _done(self) -> list[int]:
        """Which of the prompts in work miss their last token only."""
        return [index for index, (segments, _, _) in enumerate(self._currently_processing) if _left(segments) == 1]

    def holds(self, uid: int) -> bool:
        """Whether a row is here, wherever it stands."""
        return uid in self._rows

    def take(self, other: "Generator", uids: Collection[int]) -> None:
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
    def has_prompts(self) -> bool:
        """Whether the prompt of any row is not done."""
        return bool(self._currently_processing or self._unprocessed_sequences)

    @property
    def prompts_in_work(self) -> int:
        """Prompts that the next step processes a slice of."""
        tokens = [left for segments, _, _ in self._currently_processing if (left := _left(segments)) > 1]
        for _, segments, *_ in self._unprocessed_sequences:
            left = _left(segments)
            if len(tokens) >= self._most_prompts or (sum(tokens) >= ENOUGH and left > 1):
                break
            tokens.append(left)
        return len(tokens)


def _left(segments: list[list[int]]) -> int:
    """Tokens of a prompt that are not processed."""
    return sum(map(len, segments))
