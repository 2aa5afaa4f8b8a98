"""Batches by length: a batch pads the cache of every row to its longest row, so short rows would pay for long ones."""

import math
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, Final

from mlx import nn

from .continuous_batch import ContinuousBatch, PromptProgress
from .row_cache import Checkpoint
from .rows import Row

FIRST_BUCKET_TOKENS: Final = 512
"""Maximum length of rows in the first bucket. Each further bucket holds rows up to twice as long."""
MIN_PADDING_TOKENS: Final = 8192
"""Tokens of padding that never justify another batch, however small the model: each batch costs a step of its own."""
UIDS_PER_BUCKET: Final = 1 << 40
"""Each bucket numbers its rows from another multiple of this."""


class LengthBucketedBatch:
    """One `ContinuousBatch` for each bucket of lengths, with the same methods.

    Prompts are prefilled in their bucket. The buckets take turns, so that a short prompt does not wait for a long one.
    Rows of different buckets are decoded together while that costs little padding; see `assign_buckets`.

    Args:
        model: The network.
        rows: Maximum number of rows decoded together.
        prompts: Maximum number of prompts of one bucket prefilled together.
        eos_token_ids: The tokens that end a turn or a gap.
        xtc_special_tokens: Tokens that XTC never excludes.
        positions: Maximum number of positions of the model.
        padding: Maximum tokens of padding in a batch; see `max_padding_tokens`.
    """

    def __init__(
        self,
        model: nn.Module,
        rows: int,
        prompts: int,
        eos_token_ids: set[int],
        xtc_special_tokens: set[int],
        positions: int,
        padding: float,
    ) -> None:
        self._max_rows = rows
        self._padding = padding
        self._settings = (model, prompts, eos_token_ids, xtc_special_tokens, positions)
        self._batches: dict[int, ContinuousBatch] = {}
        self._batches_in_turn: deque[ContinuousBatch] = deque()
        self._prefilling: ContinuousBatch | None = None
        """The batch whose prompts were admitted last."""
        self._grouped: list[list[int]] = []
        """The uids of each batch after the last regrouping."""

    def add(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any] | None = None,
        prefix_tokens: int = 0,
        checkpoints: Collection[int] = (),
    ) -> int:
        """See `ContinuousBatch.add`."""
        return self._batch(bucket_of(len(prompt))).add(row, prompt, cache, prefix_tokens, checkpoints)

    def add_prefilled(self, row: Row, tokens: list[int], cache: list[Any]) -> int:
        """See `ContinuousBatch.add_prefilled`."""
        return self._batch(bucket_of(len(tokens))).add_prefilled(row, tokens, cache)

    def copy_cache(self, uid: int) -> list[Any]:
        """See `ContinuousBatch.copy_cache`."""
        return self._batch_of(uid).copy_cache(uid)

    def checkpoint(self, uid: int) -> Checkpoint | None:
        """See `ContinuousBatch.checkpoint`."""
        return self._batch_of(uid).checkpoint(uid)

    def drop(self, uids: Collection[int]) -> None:
        """See `ContinuousBatch.drop`."""
        for batch in self._batches.values():
            if own := [uid for uid in uids if batch.contains(uid)]:
                batch.drop(own)

    def admit_prompts(self, max_tokens: int) -> int:
        """See `ContinuousBatch.admit_prompts`. Admits prompts of the bucket whose turn it is."""
        for batch in self._batches_in_turn:
            if batch.has_prompts:
                self._prefilling = batch
                self._batches_in_turn.remove(batch)
                self._batches_in_turn.append(batch)
                return batch.admit_prompts(max_tokens, self._free_rows)
        return 0

    def prefill(self, size: int) -> list[PromptProgress]:
        """See `ContinuousBatch.prefill`. Computes the prompts of the bucket that `admit_prompts` chose."""
        return self._prefilling.prefill(size) if self._prefilling else []

    def start_decoding(self) -> list[PromptProgress]:
        """See `ContinuousBatch.start_decoding`."""
        started: list[PromptProgress] = []
        for batch in self._batches.values():
            started += batch.start_decoding(self._free_rows)
        return started

    def first_tokens(self) -> list[Any]:
        """See `ContinuousBatch.first_tokens`."""
        return [row for batch in self._batches.values() for row in batch.first_tokens()]

    def decode(self) -> list[Any]:
        """See `ContinuousBatch.decode`."""
        self._regroup()
        return [row for batch in self._batches.values() for row in batch.decode()]

    @property
    def running(self) -> int:
        """Number of rows that are decoded."""
        return sum(batch.running for batch in self._batches.values())

    @property
    def longest_remaining(self) -> int:
        """See `ContinuousBatch.longest_remaining`, for the bucket that `admit_prompts` chose."""
        return self._prefilling.longest_remaining if self._prefilling else 0

    @property
    def has_prompts(self) -> bool:
        """See `ContinuousBatch.has_prompts`."""
        return any(batch.has_prompts for batch in self._batches.values())

    def close(self) -> None:
        """Release what mlx-lm reserved."""
        for batch in reversed(self._batches.values()):  # each restores the settings that it found
            batch.close()

    def _batch(self, bucket: int) -> ContinuousBatch:
        if bucket not in self._batches:
            self._batches[bucket] = batch = ContinuousBatch(*self._settings, first_uid=bucket * UIDS_PER_BUCKET)
            self._batches_in_turn.append(batch)
        return self._batches[bucket]

    def _batch_of(self, uid: int) -> ContinuousBatch:
        return next(batch for batch in self._batches.values() if batch.contains(uid))

    @property
    def _free_rows(self) -> int:
        return self._max_rows - sum(batch.active for batch in self._batches.values())

    # Which rows are decoded together.

    def _regroup(self) -> None:
        """Move rows between batches if rows came or went. Otherwise all grow alike, and padding stays the same."""
        grouped = [[*batch.lengths] for batch in self._batches.values()]
        if grouped == self._grouped:
            return
        lengths = {uid: n for batch in self._batches.values() for uid, n in batch.lengths.items()}
        if len({bucket_of(length) for length in lengths.values()}) > 1 or sum(map(bool, grouped)) > 1:
            self._move(assign_buckets(lengths, self._padding))
        self._grouped = [[*batch.lengths] for batch in self._batches.values()]

    def _move(self, buckets: Mapping[int, int]) -> None:
        for bucket in set(buckets.values()):
            target = self._batch(bucket)
            for source in [*self._batches.values()]:
                if source is not target and (uids := {uid for uid in source.lengths if buckets[uid] == bucket}):
                    target.move_from(source, uids)


def max_padding_tokens(weights_bytes: float, token_bytes: float) -> float:
    """Return the tokens of padding from which another batch is cheaper.

    Another batch reads all weights once more. The limit is half of the padding that takes as long to read, since
    padding takes memory too.

    Args:
        weights_bytes: Size of the model's weights.
        token_bytes: Size of one token in the cache.
    """
    return max(MIN_PADDING_TOKENS, weights_bytes / (2 * token_bytes)) if token_bytes else math.inf


def bucket_of(length: int) -> int:
    """Return the bucket of a row of `length` tokens."""
    return max(0, (length - 1) // FIRST_BUCKET_TOKENS).bit_length()


def assign_buckets(lengths: Mapping[int, int], padding: float) -> dict[int, int]:
    """Return the bucket that decodes each row: its own, or that of a longer row.

    Args:
        lengths: Tokens of each row, by uid.
        padding: Maximum tokens of padding in a batch. Rows of one bucket are decoded together in any case.
    """
    buckets: dict[int, int] = {}
    group: list[int] = []
    tokens = 0
    for uid, length in sorted(lengths.items(), key=lambda row: row[1]):
        is_longer = group and bucket_of(length) > bucket_of(lengths[group[-1]])
        if is_longer and len(group) * length - tokens > padding:
            group, tokens = [], 0
        group.append(uid)
        tokens += length
        buckets |= dict.fromkeys(group, bucket_of(length))
    return buckets
