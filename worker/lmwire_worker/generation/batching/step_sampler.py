"""The sampler of one step: logits are changed, masked and sampled as each row asks.

What no request asks for is not computed. Masks and the sampler need numpy, whose import takes longer than a short
prompt, so they are imported then.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

import mlx.core as mx

from lmwire_protocol.commands import Generation

from ..sampling.logits_processors import BANNED_LOGIT, EosBan, Penalties
from ..sampling.logprobs import BatchLogprobs, LogprobHandle
from ..structured_output.constraint import Constraint
from .decoding import Decoding
from .rows import RowState, changes_logits

if TYPE_CHECKING:
    from ..sampling.dry import DryPenalties
    from ..structured_output.token_masks import TokenMasks


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


def _new_processors(
    rows: Sequence[RowState], eos_token_ids: set[int]
) -> Callable[[mx.array, mx.array], mx.array] | None:
    """Return what changes the logits [B, V] after the newest tokens [B]; None if no row asks for a change."""
    requests = [state.row.request for state in rows]
    if not any(map(changes_logits, requests)):
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
