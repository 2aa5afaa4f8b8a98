"""The rows of a batch: how far each one is, and groups of them that compute a chunk of each prompt, or a token each."""

import copy
from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache
from msgspec import Struct

from lmwire_protocol.commands import Generation

from ..banned_strings import BannedStrings
from ..caches import (
    Checkpoint,
    RowCache,
    append_empty_rows,
    copy_row,
    evaluate,
    keep_rows,
    merge_caches,
    to_aligned,
    to_batched,
    to_single,
    truncate_rows,
)
from ..sampling.logits_processors import BANNED_LOGIT, EosBan, Penalties
from ..sampling.logprobs import BatchLogprobs, LogprobHandle
from ..structured_output.constraint import Constraint
from .step_speeds import MIN_GAIN, StepSpeeds, StepWatch

if TYPE_CHECKING:
    from ..sampling.dry import DryPenalties, Repetitions
    from ..structured_output.token_masks import TokenMasks
    from .continuations import Continuation, FollowingToken, Sampler
    from .pace import Pace
    from .prompt_lookup import PromptLookup
    from .speculative import TargetDraftPair
    from .uneven import Columns


class Row(Protocol):
    """A sequence, as the batch uses it."""

    request: Generation
    seed: int
    prompt: list[int]
    constraint: Constraint | None
    repetitions: "Repetitions | None"
    """The repetitions that DRY penalizes; None for a row without DRY."""
    bans: BannedStrings | None
    """The strings that the answer must not contain; None if it may contain anything."""

    @property
    def remaining_tokens(self) -> int:
        """Maximum number of tokens still to generate, without an eos token."""
        ...

    def append_token(self, token: int, logprob: LogprobHandle | None, *, drafted: bool = False) -> bool:
        """Append the row's next token, and return whether the row continues.

        Args:
            token: The token.
            logprob: Its log-probability, if the request asks for it.
            drafted: A draft proposed the token.
        """
        ...

    def forced_tokens(self, token: int, limit: int) -> list[int]:
        """Give the constraint the newest token, and return the only tokens that may follow it, at most `limit`."""
        ...


class PromptProgress(Struct, frozen=True):
    """The progress of a row's prompt, without the tokens that were cached."""

    row: Any
    """The row, as it was added."""
    done: int
    """Number of tokens computed."""
    total: int
    """Number of tokens to compute."""
    at_checkpoint: bool
    """True if the caches can be stored now."""

    @property
    def is_complete(self) -> bool:
        """True if the whole prompt is computed, its last token included."""
        return self.done == self.total


class RowState:
    """A row, with its tokens and its cache.

    Args:
        row: Receives the generated tokens.
        prompt: The tokens to start with. It must not change.
        cache: The cache of the first `prefix_tokens` of them, which this object takes over.
        prefix_tokens: Fewer than all tokens.
        checkpoints: Token counts at which a chunk ends. Another one ends before the last token.
        order: Place among the queued rows: those with a lower number come first.
    """

    def __init__(
        self,
        row: Row,
        prompt: list[int],
        cache: list[Any],
        prefix_tokens: int,
        checkpoints: Collection[int] = (),
        order: int = 0,
    ) -> None:
        self.row = row
        self.order = order
        self.prompt = prompt
        self.tokens = prompt[:prefix_tokens]
        """The tokens that the cache holds. The newest token is not one of them."""
        self.cache = cache
        """The row's own cache. In a group, the cache belongs to the group."""
        self.is_delivered = False
        """True if the row already has the token that its next step reads."""
        self.following: list[FollowingToken] = []
        """The tokens after that one that the same step computed: a grammar allows no others, or a draft was right."""
        self.lookup: PromptLookup | None = None
        """Proposes tokens from the row's own text; None until the row asks for some."""
        self.pace: Pace | None = None
        """Sets the number of tokens that a draft model proposes; None until it proposes some."""
        last = len(prompt) - 1
        self._chunk_ends = sorted({end for end in checkpoints if end < last} | {last})
        self._prefix_tokens = prefix_tokens

    @property
    def remaining(self) -> int:
        """Number of the prompt's tokens that are not computed."""
        return len(self.prompt) - len(self.tokens)

    @property
    def samples_by_position(self) -> bool:
        """True if no token before a place affects how its logits are sampled, but only its position."""
        return self.row.constraint is None and not _changes_logits(self.row.request)

    def progress(self, computed: int) -> PromptProgress:
        """Return the progress of the prompt, of which `computed` tokens are computed or were cached."""
        done, total = computed - self._prefix_tokens, len(self.prompt) - self._prefix_tokens
        return PromptProgress(self.row, done, total, computed in self._chunk_ends)

    def pause_at(self, end: int) -> None:
        """Let a chunk end after `end` tokens, which are more than are computed."""
        if end not in self._chunk_ends:
            insort(self._chunk_ends, end)

    def next_chunk(self, size: int) -> list[int]:
        """Return the next tokens of the prompt, at most `size`, and none beyond a checkpoint. More than one remain."""
        start = len(self.tokens)
        stop = self._chunk_ends[bisect_right(self._chunk_ends, start)]
        return self.prompt[start : min(start + size, stop)]


MAX_FOLLOWING_TOKENS: Final = 31
"""Maximum number of tokens that follow a row's newest one in a step, since a schema's constants have any length and no
step is interrupted."""
MAX_STEP_TOKENS: Final = 256
"""Maximum number of tokens that a GPU computes in a step of several rows, padding included, so that none takes much
longer than a step of one token each. The start of its kernels takes most of such a step."""


class Decoding(Struct, frozen=True):
    """Settings of a batch's decode steps."""

    eos_token_ids: set[int]
    """The tokens that end a turn or a gap."""
    xtc_special_tokens: set[int]
    """Tokens that XTC never excludes."""
    positions: int
    """Maximum number of positions of the model. Padding never exceeds it."""
    looks_up: bool = False
    """Tokens are proposed from each row's own text; see `PromptLookup`. All caches are plain KV caches then."""
    draft: "TargetDraftPair | None" = None
    """The network, if it has a draft model that proposes tokens."""
    several_rows: Callable[[], bool] = bool
    """Returns whether several rows may get different numbers of tokens in a step, which needs plain KV caches too."""
    speeds: "StepSpeeds | None" = None
    """Durations of steps, which decide whether a wider one is worth it; None to decide without a clock."""

    def is_worth_it(self, rows: int, width: int, gain: float) -> bool:
        """See `StepSpeeds.is_worth_it`."""
        if self.speeds is not None:
            return self.speeds.is_worth_it(rows, width, gain)
        return gain >= MIN_GAIN


class StepSampler:
    """Samples the next token of each row. Valid until rows join or leave; each call is a step.

    Args:
        decoding: How the batch decodes.
        rows: The rows. Their newest tokens come with the next call. A row that samples by position may be here several
            times.
        ahead: Number of tokens after its newest one that each samples; none for 0 of all.
    """

    def __init__(self, decoding: Decoding, rows: Sequence[RowState], ahead: Sequence[int] = ()) -> None:
        requests = [state.row.request for state in rows]
        positions = [len(state.tokens) + more for state, more in zip(rows, ahead or [0] * len(rows), strict=True)]
        self._process = _new_processors(rows, decoding.eos_token_ids)
        self._masks = _new_masks([state.row.constraint for state in rows])
        seeds = [state.row.seed for state in rows]
        self._sample = _new_sampler(requests, seeds, positions, decoding.xtc_special_tokens)
        self._logprobs = BatchLogprobs(requests) if any(request.logprobs for request in requests) else None

    def __call__(self, raw: mx.array, newest: mx.array) -> tuple[mx.array, list[LogprobHandle | None]]:
        """Start to evaluate the next tokens.

        Args:
            raw: The model's logits [B, V] after the newest tokens.
            newest: The newest token of each row [B].

        Returns:
            The next tokens [B], and the log-probability handle of each row.
        """
        logits = self._process(raw, newest) if self._process is not None else raw
        if self._masks is not None:
            logits = self._masks(logits, newest)
        tokens = self._sample(logits)
        if self._logprobs is None:
            mx.async_eval(tokens)
            return tokens, [None] * len(tokens)
        handles = self._logprobs(raw, tokens)
        mx.async_eval(tokens, self._logprobs.pending)
        return tokens, handles


# What no request asks for is not computed. Masks and the sampler need numpy, whose import takes longer than a short
# prompt, so they are imported then.


def _new_processors(
    rows: Sequence[RowState], eos_token_ids: set[int]
) -> Callable[[mx.array, mx.array], mx.array] | None:
    """Return what changes the logits [B, V] after the newest tokens [B]; None if no row asks for a change."""
    requests = [state.row.request for state in rows]
    if not any(map(_changes_logits, requests)):
        return None
    bans = [(index, state) for index, state in enumerate(rows) if state.row.bans is not None]
    generated = [len(state.tokens) + 1 - len(state.row.prompt) for state in rows]
    penalize, dry, ban_eos = (
        Penalties(requests, [state.tokens for state in rows]),
        _new_dry_penalties(rows),
        EosBan(requests, generated, eos_token_ids),
    )

    def process(logits: mx.array, newest: mx.array) -> mx.array:
        logits = penalize(logits, newest)
        if dry is not None:
            logits = dry(logits, newest)
        logits = ban_eos(logits)
        return _without_banned(logits, bans) if bans else logits

    return process


def _without_banned(logits: mx.array, bans: Sequence[tuple[int, RowState]]) -> mx.array:
    """Return logits [B, V] without the tokens with which banned strings began; `bans` has the rows that ban strings."""
    places = [
        (index, token)
        for index, state in bans
        if state.row.bans is not None
        for token in state.row.bans.banned_at(len(state.tokens) + 1 - len(state.row.prompt))
    ]
    if not places:
        return logits
    logits = logits.astype(mx.float32)
    rows, tokens = zip(*places, strict=True)
    logits[mx.array(rows), mx.array(tokens)] = BANNED_LOGIT
    return logits


def _new_dry_penalties(rows: Sequence[RowState]) -> "DryPenalties | None":
    """Return DRY's penalties of rows; None if no row asks for them."""
    asking = [
        (index, state.row.repetitions, state.tokens)
        for index, state in enumerate(rows)
        if state.row.repetitions is not None
    ]
    if not asking:
        return None
    from ..sampling.dry import DryPenalties

    return DryPenalties(asking)


def _changes_logits(request: Generation) -> bool:
    penalties = (request.repetition_penalty, request.presence_penalty, request.frequency_penalty)
    bans = (request.ignore_eos, request.min_tokens, request.banned_strings)
    return any((request.logit_bias, request.dry_multiplier, *bans)) or penalties != (1, 0, 0)


def _new_masks(constraints: Sequence[Constraint | None]) -> "TokenMasks | None":
    """Return the token masks of rows; None if none is constrained."""
    if not any(constraints):
        return None
    from ..structured_output.token_masks import TokenMasks

    return TokenMasks(constraints)


def _new_sampler(
    requests: Sequence[Generation], seeds: Sequence[int], positions: Sequence[int], special: Collection[int]
) -> Callable[[mx.array], mx.array]:
    """Return what gives the next tokens [B] of logits [B, V]; see `BatchSampler` for the arguments."""
    if not any(request.temperature > 0 for request in requests):
        return partial(mx.argmax, axis=-1)
    from ..sampling.sampler import BatchSampler

    return BatchSampler(requests, seeds, positions, special)


class RowGroup:
    """Rows with one cache for all: prompts that are prefilled, or answers that are decoded.

    While there is one row, its cache keeps its single form, which is faster, and exact.

    Args:
        model: The network.
        decoding: How the batch decodes.
        rows: The first rows. The group takes their caches over.
    """

    def __init__(self, model: nn.Module, decoding: Decoding, rows: Collection[RowState] = ()) -> None:
        self.rows = list(rows)
        self.has_new_rows = False
        """True if answers have joined since the last step."""
        self._model = model
        self._decoding = decoding
        self._caches: list[Any] = merge_caches([state.cache for state in rows])
        self._columns: Columns | None = None
        """The places of the tokens in the caches, while these have their uneven form."""
        for state in rows:
            state.cache = []
        self._newest: mx.array | None = None
        """The tokens [B] that the next step reads; None for prompts."""
        self._handles: list[LogprobHandle | None] = []
        """Their log-probability handles."""
        self._sample: Sampler | None = None
        """The sampler of these rows; None until the next step."""
        self._watch: StepWatch | None = None
        """Measures the steps of these rows, where a wider one may come; None until the next step."""

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
        self._make_even()
        other._make_even()
        if not self.rows:
            self._caches, self._newest = other._caches, other._newest
        elif other.rows:
            self._caches = [to_batched(cache, len(self.rows)) for cache in self._caches]
            for cache, more in zip(self._caches, other._caches, strict=True):
                cache.extend(to_batched(more, len(other.rows)))
            if self._newest is not None and other._newest is not None:
                self._newest = mx.concatenate([self._newest, other._newest])
        self.rows += other.rows
        self._handles += other._handles
        self._sample = self._watch = None

    def take(self, rows: Collection[Row]) -> "RowGroup":
        """Remove rows, and return them as a group."""
        taken = RowGroup(self._model, self._decoding)
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
        if indices:
            self._make_even()
        self.rows = [self.rows[index] for index in indices]
        self._sample = self._watch = None
        if not indices:
            self._caches, self._columns, self._newest, self._handles = [], None, None, []
            return
        for cache in self._caches:
            keep_rows(cache, indices)
        if len(indices) == 1:
            self._caches = [to_single(cache) for cache in self._caches]
        if self._newest is not None:
            self._newest = self._newest[mx.array(indices)]
            self._handles = [self._handles[index] for index in indices]

    # Their caches.

    def _align(self) -> None:
        """Give the caches their aligned form if all rows have the same length."""
        length = len(self.rows[0].tokens)
        if self._columns is None and len(self.rows) > 1 and all(len(state.tokens) == length for state in self.rows):
            self._caches = [to_aligned(cache, length) for cache in self._caches]

    def _make_even(self) -> None:
        """Give the caches a form without holes."""
        if self._columns is not None:
            from .uneven import to_even

            self._caches = to_even(self._caches, self._columns, [len(state.tokens) for state in self.rows])
            self._columns = None

    def checkpoint(self, row: Row) -> Checkpoint | None:
        """Return the cache of a row; None if it is empty or incomplete."""
        self._make_even()
        index = self._index(row)
        tokens = self.rows[index].tokens
        cache = RowCache(self._caches, index, len(tokens))
        return Checkpoint(tokens, cache) if tokens and cache.complete else None

    def copy_cache(self, row: Row) -> list[Any]:
        """Return a copy of the cache of a row."""
        self._make_even()
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
        if len({*map(len, chunks)}) == 1 and (shape is None or shape[0] == len(chunks)):
            self._align()
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
        decoding = self._decoding
        has_grammar = any(state.row.constraint is not None for state in self.rows)
        if not (has_grammar or decoding.looks_up or decoding.draft is not None):
            return self._step_once()
        if decoding.speeds is None:
            return self._step_far(has_grammar)
        self._watch = self._watch or StepWatch(decoding.speeds)
        with self._watch:
            return self._step_far(has_grammar)

    def _step_once(self) -> list[int]:
        """Make a step of one token for each row."""
        newest = self._newest
        assert newest is not None
        if self._sample is None:
            self._align()
            self._sample = StepSampler(self._decoding, self.rows)
        logits = self._model(newest[:, None], cache=self._caches)[:, -1, :]
        following, handles = self._sample(logits, newest)
        tokens = self._read_newest()
        self._newest, self._handles = following, handles
        for state, token in zip(self.rows, tokens, strict=True):
            state.tokens.append(token)
        self._note_step([1] * len(tokens), 1)
        return tokens

    def _read_newest(self) -> list[int]:
        """Wait for the newest tokens."""
        tokens = _to_list(self._newest)
        if self._watch is not None:
            self._watch.know()
        return tokens

    def _step_far(self, has_grammar: bool) -> list[int]:
        """Make a step of several tokens for some rows if that is worth it, and else of one for each."""
        if found := self._find_continuations(has_grammar):
            return self._step_over(found)
        return self._step_once()

    def _find_continuations(self, has_grammar: bool) -> "list[Continuation]":
        """Return what may follow the newest token of each row; nothing if no row gets more than a token."""
        decoding = self._decoding
        room = self._room
        if not room:
            return []
        from .continuations import find_continuations

        searched = has_grammar or decoding.looks_up
        found = find_continuations(self.rows, self._read_newest, room, decoding) if searched else []
        return self._propose(room) if decoding.draft is not None and not found else found

    def _propose(self, room: int) -> "list[Continuation]":
        """Return what the draft model proposes for each row; nothing if it proposes nothing."""
        from .continuations import Continuation, wanted_proposals

        wanted = wanted_proposals(self.rows, room, self._decoding)
        if not wanted:
            return []
        if len(self.rows) > 1:
            self._make_uneven()
        self._read_newest()  # what follows belongs to the next step
        assert self._decoding.draft is not None and self._newest is not None
        proposed = self._decoding.draft.propose(self._newest, self._caches, max(wanted), self._columns)
        return [Continuation(tokens[:count]) for tokens, count in zip(proposed, wanted, strict=True)]

    @property
    def _room(self) -> int:
        """Maximum number of tokens that may follow each row's newest one in a step."""
        room = MAX_FOLLOWING_TOKENS
        if len(self.rows) > 1:
            if not self._decoding.several_rows():
                return 0
            room = min(room, MAX_STEP_TOKENS // len(self.rows) - 1)
        longest = max(len(state.tokens) for state in self.rows)
        return max(0, min(room, self._decoding.positions - longest - 1))

    def _step_over(self, found: "list[Continuation]") -> list[int]:
        """Start to evaluate the tokens after those that follow the newest ones, and return the tokens before them."""
        from .continuations import note_proposals, sample_after

        newest = self._read_newest()
        lines = [[token, *after.tokens] for token, after in zip(newest, found, strict=True)]
        width = max(map(len, lines))
        if len(lines) > 1:
            width = min(1 << (width - 1).bit_length(), self._room + 1)  # a GPU compiles kernels for each width
            self._make_uneven()
        padded = [line + line[-1:] * (width - len(line)) for line in lines]
        draft = self._decoding.draft
        is_read_by_draft = draft is not None and not any(after.is_forced for after in found)
        compute = draft.verify if draft is not None and is_read_by_draft else self._model
        logits = compute(mx.array(padded), cache=self._caches)
        new_sampler = partial(StepSampler, self._decoding)
        ends = self._decoding.eos_token_ids
        sampled = sample_after(self.rows, newest, found, logits, self._sample, new_sampler, ends)
        self._newest, self._handles, counts, self._sample = sampled
        note_proposals(self.rows, found, counts)
        if self._columns is None and (wrong := width - counts[0]):
            for cache in self._caches:
                cache.trim(wrong)
        self._note_step(counts, width)
        return newest

    def _make_uneven(self) -> None:
        """Give the caches a form whose rows may grow by different numbers of tokens."""
        from .uneven import to_uneven

        if self._columns is None:
            self._caches, self._columns = to_uneven(self._caches, len(self.rows))

    def _note_step(self, counts: list[int], width: int) -> None:
        """Keep the first tokens of each row that a step has computed, in uneven caches.

        Args:
            counts: Number of tokens of each row to keep.
            width: Number of tokens of each row that the step computed.
        """
        if self._watch is not None:
            self._watch.start(len(counts), width)
        if self._columns is None:
            return
        from .uneven import MAX_HOLES

        self._columns.advance(counts)
        if self._columns.count - max(len(state.tokens) for state in self.rows) > MAX_HOLES:
            self._make_even()

    def _append(self, tokens: list[int], handles: list[LogprobHandle | None]) -> None:
        """Give its token to each row that does not have it, and those after it.

        A row that ends does not count as having it.
        """
        for state, token, handle in zip(self.rows, tokens, handles, strict=True):
            state.is_delivered = state.is_delivered or state.row.append_token(token, handle)
            for more in state.following:
                state.is_delivered = state.is_delivered and state.row.append_token(
                    more.token, more.logprob, drafted=more.drafted
                )
            state.following = []


def _to_list(tokens: mx.array | None) -> list[int]:
    listed: Any = [] if tokens is None else tokens.tolist()
    return listed


# A chunk of each prompt: how much at once, in which shape, and with how much padding.

MAX_CHUNK_TOKENS: Final = 2048
"""Maximum tokens of one prompt in one pass."""
MAX_CPU_TOKENS: Final = 512
"""Maximum tokens computed at once on a CPU, over all prompts: the activations of more exceed its caches."""
MAX_SPARE_BYTES: Final = 64 << 20
"""Freed memory that MLX may keep after a chunk, in bytes. On a CPU, short prompts are slower if the system has to give
the memory anew. The chunks of large models use more, and return all of it."""


def compute_chunks(
    model: nn.Module, caches: list[Any], chunks: list[list[int]], shape: tuple[int, int] | None = None
) -> list[Any]:
    """Compute a chunk of each prompt, and return the caches with it.

    Padding follows a chunk, so that the chunk's tokens do not attend to it. Afterwards it precedes the row's tokens,
    or is removed where all rows have it.

    Args:
        model: The network.
        caches: The caches of the rows, which this function takes over. Where chunks differ in length or a shape is
            given, they are plain KV caches.
        chunks: The tokens of each row.
        shape: Rows and tokens of each that the model computes, no fewer than there are; None for as many as there are.
    """
    lengths = [len(chunk) for chunk in chunks]
    longest = max(lengths)
    rows, width = shape or (len(chunks), longest)
    added = rows - len(chunks)
    padded = len(set(lengths)) > 1
    if added or padded:
        caches = [to_batched(cache, len(chunks)) for cache in caches]
    if added:
        caches = [append_empty_rows(cache, added) for cache in caches]
    lengths += [longest] * added
    padding = [longest - length for length in lengths]
    if any(padding):
        for cache in caches:
            cache.prepare(lengths=lengths, right_padding=padding)
    tokens = mx.array([chunk + [0] * (width - len(chunk)) for chunk in [*chunks, *[[]] * added]])
    at_once = width if shape else _tokens_at_once(rows)
    for start in range(0, width, at_once):
        model(tokens[:, start : start + at_once], cache=caches)
        if start + at_once < width:
            evaluate(caches)
    for cache in caches:
        if width > longest:
            cache.trim(width - longest)
        if any(padding):
            cache.finalize()
        if added:
            truncate_rows(cache, len(chunks))
    evaluate(caches)
    if not shape and mx.get_cache_memory() > MAX_SPARE_BYTES:  # rounded shapes take the same memory again
        mx.clear_cache()
    return caches


def prefill(model: nn.Module, tokens: list[int], cache: list[Any] | None = None, cached_tokens: int = 0) -> list[Any]:
    """Return a cache with all tokens but the last. The last one is computed on a copy, to detect errors.

    Args:
        model: The network.
        tokens: The tokens.
        cache: The cache of the first `cached_tokens` tokens, which this function takes over; None for an empty one.
        cached_tokens: Number of tokens in the cache.
    """
    cache = cache or make_prompt_cache(model)
    for start in range(cached_tokens, len(tokens) - 1, MAX_CHUNK_TOKENS):
        model(mx.array([tokens[start : min(start + MAX_CHUNK_TOKENS, len(tokens) - 1)]]), cache=cache)
        evaluate(cache)
    mx.eval(model(mx.array([tokens[-1:]]), cache=copy.deepcopy(cache)))
    return cache


def _tokens_at_once(prompts: int) -> int:
    """Return the maximum tokens of each of `prompts` prompts that are computed at once."""
    return max(1, MAX_CPU_TOKENS // prompts) if mx.default_device() == mx.cpu else MAX_CHUNK_TOKENS
