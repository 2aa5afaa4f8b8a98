"""Batches by length: a batch pads every row's cache to its longest, and a short row would pay for a long one."""

import math
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, Final

from mlx import nn

from .continuous_batch import ContinuousBatch, PromptProgress
from .rows import Row

FIRST_BUCKET_TOKENS: Final = 512
"""Tokens of the rows of the first bucket, at most. Each further bucket holds rows up to twice as long."""
MIN_PADDING_TOKENS: Final = 8192
"""Tokens of padding that a batch of its own is not worth, however small the model: a step has a cost of its own."""
UIDS_PER_BUCKET: Final = 1 << 40
"""Each bucket counts its rows from another multiple of this."""


class LengthBucketedBatch:
    """Does what a `Generator` does, with one generator for each bucket.

    Prompts are processed in their bucket, and the buckets take turns at it, so that a short prompt does not wait for
    a long one. Rows of different buckets run together as long as little is lost by that; see `homes`.

    Args:
        model: What mlx-lm loaded.
        rows: Decoded together, at most.
        prompts: Of one bucket, processed together, at most.
        ends: The model's end-of-turn tokens.
        structural: Tokens that XTC leaves alone.
        positions: Of tokens that the model knows.
        padding: Tokens of padding that a batch of its own is worth; see `padding_worth`.
    """

    def __init__(
        self,
        model: nn.Module,
        rows: int,
        prompts: int,
        ends: set[int],
        structural: set[int],
        positions: int,
        padding: float,
    ) -> None:
        self._limit = rows
        self._padding = padding
        self._settings = (model, prompts, ends, structural, positions)
        self._batches: dict[int, ContinuousBatch] = {}
        self._batches_in_turn: deque[ContinuousBatch] = deque()
        self._turn: ContinuousBatch | None = None
        self._grouped: list[list[int]] = []

    def add(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any] | None = None,
        held: int = 0,
        borders: Collection[int] = (),
    ) -> int:
        """See `Generator.add`."""
        return self._batch(bucket_of(len(prompt))).add(row, prompt, cache, held, borders)

    def add_prefilled(self, row: Row, tokens: list[int], cache: list[Any]) -> int:
        """See `Generator.join`."""
        return self._batch(bucket_of(len(tokens))).add_prefilled(row, tokens, cache)

    def cache_of(self, uid: int) -> list[Any]:
        """See `Generator.cache_of`."""
        return self._batch_of(uid).cache_of(uid)

    def drop(self, uid: int) -> None:
        """See `Generator.drop`."""
        self._batch_of(uid).drop(uid)

    def start_decoding(self) -> list[PromptProgress]:
        """See `Generator.begin`."""
        begun: list[PromptProgress] = []
        for generator in self._batches.values():
            begun += generator.start_decoding(self._free_rows)
        return begun

    def first_tokens(self) -> list[Any]:
        """See `Generator.first_tokens`."""
        return [row for generator in self._batches.values() for row in generator.first_tokens()]

    def decode(self) -> list[Any]:
        """See `Generator.decode`."""
        self._regroup()
        return [row for generator in self._batches.values() for row in generator.decode()]

    def admit_prompts(self, enough: int) -> int:
        """See `Generator.take_up`. It is for the prompts of the bucket whose turn it is."""
        for generator in self._batches_in_turn:
            if generator.has_prompts:
                self._turn = generator
                self._batches_in_turn.remove(generator)
                self._batches_in_turn.append(generator)
                return generator.admit_prompts(enough, self._free_rows)
        return 0

    def prefill(self, size: int) -> list[PromptProgress]:
        """See `Generator.prefill`. It is for the prompts that were taken up last."""
        return self._turn.prefill(size) if self._turn else []

    @property
    def running(self) -> int:
        """Rows whose prompt is done."""
        return sum(generator.running for generator in self._batches.values())

    @property
    def longest_remaining(self) -> int:
        """See `Generator.longest_left`. It is of the prompts that were taken up last."""
        return self._turn.longest_remaining if self._turn else 0

    @property
    def has_prompts(self) -> bool:
        """See `Generator.has_prompts`."""
        return any(generator.has_prompts for generator in self._batches.values())

    def close(self) -> None:
        """Gives back what the model library reserved."""
        for generator in reversed(self._batches.values()):  # each puts back what it found
            generator.close()

    def _batch(self, bucket: int) -> ContinuousBatch:
        if bucket not in self._batches:
            self._batches[bucket] = generator = ContinuousBatch(*self._settings, first_uid=bucket * UIDS_PER_BUCKET)
            self._batches_in_turn.append(generator)
        return self._batches[bucket]

    def _batch_of(self, uid: int) -> ContinuousBatch:
        return next(generator for generator in self._batches.values() if generator.contains(uid))

    @property
    def _free_rows(self) -> int:
        """Rows that may still be at work."""
        return self._limit - sum(generator.active for generator in self._batches.values())

    # Which rows run together.

    def _regroup(self) -> None:
        """Moves rows, when some have come or gone: as long as all stay, all grow alike and padding stays the same."""
        grouped = [[*generator.lengths] for generator in self._batches.values()]
        if grouped == self._grouped:
            return
        lengths = {uid: n for generator in self._batches.values() for uid, n in generator.lengths.items()}
        if len({bucket_of(length) for length in lengths.values()}) > 1 or sum(map(bool, grouped)) > 1:
            self._move(assign_buckets(lengths, self._padding))
        self._grouped = [[*generator.lengths] for generator in self._batches.values()]

    def _move(self, homes: Mapping[int, int]) -> None:
        for home in set(homes.values()):
            target = self._batch(home)
            for source in [*self._batches.values()]:
                if source is not target and (uids := {uid for uid in source.lengths if homes[uid] == home}):
                    target.move_from(source, uids)


def max_padding_tokens(weights: float, token: float) -> float:
    """Tokens of padding that a batch of its own is worth, of a model and a row's token with so many bytes.

    It reads all weights once more. Half of the padding that would take as long to read, since that takes memory too.
    """
    return max(MIN_PADDING_TOKENS, weights / (2 * token)) if token else math.inf


def bucket_of(length: int) -> int:
    """The bucket of a row of so many tokens."""
    return max(0, (length - 1) // FIRST_BUCKET_TOKENS).bit_length()


def assign_buckets(lengths: Mapping[int, int], padding: float) -> dict[int, int]:
    """The bucket that each row runs in: its own, or that of a longer row that it is padded to.

    Args:
        lengths: Tokens of each row.
        padding: Tokens that the rows of a batch are padded with, all in all, at most. Rows of one bucket run together
            in any case.
    """
    homes: dict[int, int] = {}
    together: list[int] = []
    tokens = 0
    for uid, length in sorted(lengths.items(), key=lambda row: row[1]):
        longer = together and bucket_of(length) > bucket_of(lengths[together[-1]])
        if longer and len(together) * length - tokens > padding:
            together, tokens = [], 0
        together.append(uid)
        tokens += length
        homes |= dict.fromkeys(together, bucket_of(length))
    return homes
