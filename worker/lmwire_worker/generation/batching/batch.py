"""The batch: prompts join it and answers leave it at any step."""

import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Final, TypeVar

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

from ..caches import Checkpoint, name_special_caches
from .decoding import Decoding
from .padding import compiles_each_shape, round_shape
from .row_group import RowGroup
from .rows import PromptProgress, Row, RowState

CLEAR_INTERVAL: Final = 512
"""Steps between two releases of freed memory."""


class Batch:
    """Rows in three stages: queued, prefilled, decoded. Each length bucket has a group of rows for each stage.

    A row is queued (`add`), then prefilled (`admit_prompts`), then decoded (`start_decoding`), until `drop`. `prefill`
    computes a chunk of each admitted prompt of one bucket, and the buckets take turns, so that a short prompt does not
    wait for a long one. `decode` gives each running row a token. Rows of different buckets are decoded together while
    that costs little padding; see `assign_buckets`.

    Args:
        model: The network.
        rows: Maximum number of rows decoded together.
        prompts: Maximum number of prompts of one bucket prefilled together.
        decoding: How it decodes.
        padding: Maximum tokens of padding in a group; see `max_padding_tokens`.
        may_pad: Returns whether the model computes padded prompts correctly. It is asked before the first ones.
    """

    def __init__(
        self,
        model: nn.Module,
        rows: int,
        prompts: int,
        decoding: Decoding,
        padding: float,
        may_pad: Callable[[], bool],
    ) -> None:
        self._model = model
        self._max_rows = rows
        self._max_prompts = prompts
        self._decoding = decoding
        self._padding = padding
        self._may_pad = may_pad
        is_plain = not name_special_caches(make_prompt_cache(model))
        self._rounds_shapes = prompts > 1 and is_plain and compiles_each_shape() and may_pad()
        self._buckets: dict[int, _Bucket] = {}
        self._turns: deque[_Bucket] = deque()
        """The buckets in the order in which they prefill."""
        self._prefilling: _Bucket | None = None
        """The bucket whose prompts were admitted last."""
        self._rows_changed = False
        """True if rows have started or stopped to run since the last step."""
        self._steps = 0

    # Rows come and go.

    def add(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any] | None = None,
        prefix_tokens: int = 0,
        checkpoints: Collection[int] = (),
        order: int = 0,
    ) -> None:
        """Queue a row. The other methods take the same object as the row's name.

        Args:
            row: Receives the tokens.
            prompt: The prompt's tokens, which must not change.
            cache: The cache of the prompt's first tokens, which the row takes over; None for an empty one.
            prefix_tokens: Number of tokens in the cache. At least one token of the prompt remains.
            checkpoints: Token counts at which a chunk ends. Chunks also end before and after the last token.
            order: Place in the queue: rows with a lower number come first.
        """
        cache = cache or make_prompt_cache(self._model)
        state = RowState(row, prompt, cache, prefix_tokens, checkpoints, order)
        queue = self._bucket(bucket_of(len(prompt))).queue
        queue.insert(sum(other.order <= order for other in queue), state)

    def add_prefilled(self, row: Row, tokens: list[int], cache: list[Any]) -> None:
        """Put a row first in the queue whose cache lacks only the last token.

        Args:
            row: Receives the tokens.
            tokens: The row's tokens so far, a list which must not change.
            cache: The cache of all tokens but the last, which the row takes over.
        """
        state = RowState(row, tokens, cache, len(tokens) - 1)
        self._bucket(bucket_of(len(tokens))).queue.appendleft(state)

    def prefills_before(self, row: Row, length: int) -> bool:
        """Return whether an incomplete prompt is computed no later than a new one would be.

        Args:
            row: The row of the incomplete prompt.
            length: Tokens of the new prompt.
        """
        bucket = self._bucket(bucket_of(len(row.prompt)))
        if bucket is self._bucket(bucket_of(length)) or bucket.prompts.contains(row):
            return True
        return not bucket.prompts.rows and any(state.row is row for state in [*bucket.queue][:1])

    def pause_at(self, row: Row, tokens: int) -> None:
        """Let a chunk of an incomplete prompt end after `tokens` of its tokens, of which fewer are computed."""
        for bucket in self._buckets.values():
            for state in (*bucket.prompts.rows, *bucket.queue):
                if state.row is row:
                    state.pause_at(tokens)

    def copy_cache(self, row: Row) -> list[Any]:
        """Return a copy of the cache of a row whose prompt lacks only its last token."""
        return next(group for group in self.prompt_groups if group.contains(row)).copy_cache(row)

    def checkpoint(self, row: Row) -> Checkpoint | None:
        """Return the cache of a row; None if the row is queued or absent, or its cache is empty or incomplete."""
        for group in (*self.prompt_groups, *self.answer_groups):
            if group.contains(row):
                return group.checkpoint(row)
        return None

    def drop(self, rows: Collection[Row]) -> None:
        """Remove those of the rows that are here, whether queued, prefilled or decoded."""
        running = self.running
        for bucket in self._buckets.values():
            bucket.dequeue(rows)
            bucket.prompts.drop(rows)
            bucket.answers.drop(rows)
        self._rows_changed |= self.running < running

    def close(self) -> None:
        """Remove all rows."""
        self._buckets.clear()
        self._turns.clear()
        self._prefilling = None

    # Prefill.

    def admit_prompts(self, max_tokens: int) -> int:
        """Start to prefill queued prompts of the bucket whose turn it is, and return the number of prompts in work.

        Args:
            max_tokens: Maximum of the remaining tokens of all prompts in work. A single prompt may have more.
        """
        bucket = next((bucket for bucket in self._turns if bucket.has_prompts), None)
        if bucket is None:
            return 0
        self._prefilling = bucket
        self._turns.remove(bucket)
        self._turns.append(bucket)
        in_work = bucket.prompts.rows
        free = min(self._max_prompts - len(in_work), self._free_rows)
        tokens = sum(state.remaining for state in in_work)
        admitted: list[Row] = []
        for state in bucket.queue:
            if state.remaining == 1:
                continue
            if len(admitted) >= free or (tokens and tokens + state.remaining > max_tokens):
                break
            if tokens and not self._may_pad():
                break
            admitted.append(state.row)
            tokens += state.remaining
        bucket.prompts.extend(self._group(bucket.dequeue(admitted)))
        return len(bucket.prompts.rows)

    def prefill(self, size: int) -> list[PromptProgress]:
        """Compute a chunk of every prompt of the bucket that `admit_prompts` chose, and return their progress.

        Args:
            size: Maximum tokens of each chunk. A chunk ends at a checkpoint, too.
        """
        if self._prefilling is None:
            return []
        group = self._prefilling.prompts
        chunks = [state.next_chunk(size) for state in group.rows]
        group.prefill(chunks, self._rounded_shape(group, chunks) if self._rounds_shapes else None)
        return [state.progress(len(state.tokens)) for state in group.rows]

    def _rounded_shape(self, group: RowGroup, chunks: list[list[int]]) -> tuple[int, int] | None:
        """Return the shape to which chunks are padded; None if the model has no positions for the padding."""
        cached = max(len(state.tokens) for state in group.rows)
        rows, length = round_shape(len(chunks), max(map(len, chunks)), cached)
        return (rows, length) if cached + length <= self._decoding.positions else None

    # Decode.

    def start_decoding(self) -> list[PromptProgress]:
        """Start to decode the prompts that lack only their last token, and return their progress."""
        started: list[PromptProgress] = []
        for bucket in self._buckets.values():
            done = [state.row for state in bucket.prompts.rows if state.remaining == 1]
            cached = [state.row for state in bucket.queue if state.remaining == 1][: self._free_rows]
            if not done and not cached:
                continue
            group = bucket.prompts.take(done) if done else self._group([])
            group.extend(self._group(bucket.dequeue(cached)))
            group.start_decoding()
            started += [state.progress(len(state.tokens)) for state in group.rows]
            bucket.answers.extend(group)
            bucket.answers.has_new_rows = self._rows_changed = True
        return started

    def first_tokens(self) -> list[Any]:
        """Give their next token to all running rows of a group that has new ones, and return the rows.

        `decode` delivers tokens once it has started the next step. That is late for a first token: on a CPU, the start
        takes most of a step's time.
        """
        return [row for group in self.answer_groups if group.awaits_first_tokens for row in group.deliver()]

    def decode(self) -> list[Any]:
        """Compute a step: one token for every running row, unless `first_tokens` has delivered it. Return the rows."""
        if self._rows_changed:
            self._regroup()
            self._rows_changed = False
        self._steps += 1
        if self._steps % CLEAR_INTERVAL == 0:
            mx.clear_cache()
        return [row for group in self.answer_groups for row in group.decode()]

    def _regroup(self) -> None:
        """Decode rows together while that costs little padding. Until rows change, all grow alike."""
        lengths = {state.row: len(state.tokens) for group in self.answer_groups for state in group.rows}
        if len(self.answer_groups) < 2 and len(set(map(bucket_of, lengths.values()))) < 2:
            return
        assigned = assign_buckets(lengths, self._padding)
        for number in set(assigned.values()):
            target = self._bucket(number)
            for source in [*self._buckets.values()]:
                rows = [state.row for state in source.answers.rows if assigned[state.row] == number]
                if rows and source is not target:
                    target.answers.extend(source.answers.take(rows))

    # State.

    @property
    def prompt_groups(self) -> list[RowGroup]:
        """The prompts that are prefilled together."""
        return [bucket.prompts for bucket in self._buckets.values() if bucket.prompts.rows]

    @property
    def answer_groups(self) -> list[RowGroup]:
        """The answers that are decoded together."""
        return [bucket.answers for bucket in self._buckets.values() if bucket.answers.rows]

    @property
    def running(self) -> int:
        """Number of rows that are decoded."""
        return sum(len(bucket.answers.rows) for bucket in self._buckets.values())

    @property
    def longest_remaining(self) -> int:
        """Maximum of the remaining tokens of the prompts in work, without their last token.

        Of the bucket that `admit_prompts` chose.
        """
        in_work = self._prefilling.prompts.rows if self._prefilling else ()
        return max((state.remaining - 1 for state in in_work), default=0)

    @property
    def has_prompts(self) -> bool:
        """True if a prompt lacks more than its last token."""
        return any(bucket.has_prompts for bucket in self._buckets.values())

    @property
    def _free_rows(self) -> int:
        prefilled = sum(len(bucket.prompts.rows) for bucket in self._buckets.values())
        return max(0, self._max_rows - self.running - prefilled)

    def _bucket(self, number: int) -> "_Bucket":
        if number not in self._buckets:
            self._buckets[number] = bucket = _Bucket(self._group([]), self._group([]))
            self._turns.append(bucket)
        return self._buckets[number]

    def _group(self, rows: Collection[RowState]) -> RowGroup:
        return RowGroup(self._model, self._decoding, rows)


class _Bucket:
    """The rows of one length bucket, by stage.

    Args:
        prompts: An empty group.
        answers: An empty group.
    """

    def __init__(self, prompts: RowGroup, answers: RowGroup) -> None:
        self.queue: deque[RowState] = deque()
        self.prompts = prompts
        self.answers = answers

    @property
    def has_prompts(self) -> bool:
        """True if a prompt lacks more than its last token."""
        return any(state.remaining > 1 for state in itertools.chain(self.prompts.rows, self.queue))

    def dequeue(self, rows: Collection[Row]) -> list[RowState]:
        """Remove those of the rows that are queued, and return them in their order."""
        taken = [state for state in self.queue if state.row in rows]
        if taken:
            self.queue = deque(state for state in self.queue if state.row not in rows)
        return taken


# Length buckets: a group pads the cache of each row to its longest row, so short rows would pay for long ones.

Key = TypeVar("Key", bound=Hashable)

FIRST_BUCKET_TOKENS: Final = 512
"""Maximum length of rows in the first bucket. Each further bucket holds rows up to twice as long."""
MIN_PADDING_TOKENS: Final = 8192
"""Tokens of padding that never justify another group, however small the model: each group costs a step of its own."""


def max_padding_tokens(weights_bytes: float, token_bytes: float) -> float:
    """Return the tokens of padding from which another group is cheaper.

    Another group reads all weights once more. The limit is half of the padding that takes as long to read, since
    padding takes memory too.

    Args:
        weights_bytes: Size of the model's weights.
        token_bytes: Size of one token in the cache.
    """
    return max(MIN_PADDING_TOKENS, weights_bytes / (2 * token_bytes)) if token_bytes else math.inf


def bucket_of(length: int) -> int:
    """Return the bucket of a row of `length` tokens."""
    return max(0, (length - 1) // FIRST_BUCKET_TOKENS).bit_length()


def assign_buckets(lengths: Mapping[Key, int], padding: float) -> dict[Key, int]:
    """Return the bucket that decodes each row: its own, or that of a longer row.

    Args:
        lengths: Tokens of each row.
        padding: Maximum tokens of padding in a group. Rows of one bucket are decoded together in any case.
    """
    buckets: dict[Key, int] = {}
    group: list[Key] = []
    tokens = 0
    for row, length in sorted(lengths.items(), key=lambda item: item[1]):
        is_longer = group and bucket_of(length) > bucket_of(lengths[group[-1]])
        if is_longer and len(group) * length - tokens > padding:
            group, tokens = [], 0
        group.append(row)
        tokens += length
        buckets |= dict.fromkeys(group, bucket_of(length))
    return buckets
