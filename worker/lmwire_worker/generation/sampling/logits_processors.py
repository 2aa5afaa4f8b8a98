"""Logit bias and penalties for a whole batch.

They run on the device, so that no step waits for the token before it. The values are those of mlx-lm's logits
processors, in float32 and in the same order.
"""

from collections.abc import Collection, Sequence
from typing import Final

import mlx.core as mx

from lmwire_protocol.commands import Generation

WINDOW_STEP: Final = 256
"""Tokens by which the window of an unlimited row grows at a time, so that shapes seldom change."""
UNLIMITED: Final = 2**30
BANNED_LOGIT: Final = -1e30
"""Logit of a banned token. It is finite, so that the token still wins if a grammar allows no other."""


class Penalties:
    """Logit bias; then repetition, presence and frequency penalties on each row's recent tokens.

    Args:
        requests: The request of each row.
        histories: The tokens of each row, without the newest one, which the next call receives.
    """

    def __init__(self, requests: Sequence[Generation], histories: Sequence[list[int]]) -> None:
        biases = [(row, *bias) for row, request in enumerate(requests) for bias in request.logit_bias.items()]
        self._bias = _LogitBias(biases) if biases else None
        rows = [row for row, request in enumerate(requests) if _looks_back(request)]
        self._recent = _RecentTokenPenalties(requests, histories, rows) if rows else None

    def __call__(self, logits: mx.array, newest: mx.array) -> mx.array:
        """Return the changed logits [B, V]; float32 if a row asks for a change.

        Args:
            logits: The logits [B, V] after the newest tokens.
            newest: The newest token of each row [B].
        """
        if self._bias is not None:
            logits = self._bias(logits.astype(mx.float32))
        if self._recent is not None:
            logits = self._recent(logits.astype(mx.float32), newest)
        return logits


class EosBan:
    """Bans eos tokens: always with ignore_eos, else until min_tokens are generated.

    Args:
        requests: The request of each row.
        generated: Number of tokens that each row has generated.
        ends: The model's end-of-turn tokens.
    """

    def __init__(self, requests: Sequence[Generation], generated: Sequence[int], ends: Collection[int]) -> None:
        self._ends = sorted(ends)
        self._left = {
            row: UNLIMITED if request.ignore_eos else request.min_tokens - count
            for row, (request, count) in enumerate(zip(requests, generated, strict=True))
            if request.ignore_eos or request.min_tokens > count
        }

    def __call__(self, logits: mx.array) -> mx.array:
        """Return the logits [B, V] without the banned eos tokens; float32 if a row has a ban."""
        ends = [end for end in self._ends if end < logits.shape[-1]]  # a tokenizer may have more tokens than its model
        if not (self._left and ends):
            return logits
        logits = logits.astype(mx.float32)
        logits[mx.array(list(self._left))[:, None], mx.array(ends)] = BANNED_LOGIT
        self._left = {row: left - 1 for row, left in self._left.items() if left > 1}
        return logits


class _LogitBias:
    """Adds to the logits of given tokens."""

    def __init__(self, biases: Sequence[tuple[int, int, float]]) -> None:
        rows, tokens, values = zip(*biases, strict=True)
        self._rows, self._tokens = mx.array(rows), mx.array(tokens)
        self._values = mx.array(values, mx.float32)

    def __call__(self, logits: mx.array) -> mx.array:
        return logits.at[self._rows, self._tokens].add(self._values)


class _RecentTokenPenalties:
    """Penalties on the tokens within each row's window."""

    def __init__(self, requests: Sequence[Generation], histories: Sequence[list[int]], rows: list[int]) -> None:
        penalised = [requests[row] for row in rows]
        self._rows = mx.array(rows)[:, None]
        self._repetition = mx.array([request.repetition_penalty for request in penalised], mx.float32)[:, None]
        self._presence = mx.array([request.presence_penalty for request in penalised], mx.float32)[:, None]
        self._frequency = mx.array([request.frequency_penalty for request in penalised], mx.float32)[:, None]
        self._counts = any(request.frequency_penalty for request in penalised)
        windows = [min(request.penalty_window, UNLIMITED) or UNLIMITED for request in penalised]
        self._windows = mx.array(windows, mx.int32)[:, None]
        self._room = WINDOW_STEP
        width = max(min(len(histories[row]) + WINDOW_STEP, window) for row, window in zip(rows, windows, strict=True))
        self._grows = max(windows) > width
        # The newest token is the last; -1 stands for none.
        self._tokens = mx.array([([-1] * width + histories[row][-width:])[-width:] for row in rows], mx.int32)

    def __call__(self, logits: mx.array, newest: mx.array) -> mx.array:
        """Return penalized logits. `logits` [B, V], float32, may be changed in place."""
        self._remember(newest[self._rows])
        width = self._tokens.shape[1]
        live = (self._tokens >= 0) & (mx.arange(width) >= width - self._windows)
        # Idle places repeat the newest token: what is set twice gets the same value twice.
        tokens = mx.where(live, self._tokens, self._tokens[:, -1:])
        values = logits[self._rows, tokens]
        values = mx.where(values < 0, values * self._repetition, values / self._repetition)
        logits[self._rows, tokens] = values - self._presence
        if self._counts:
            logits = logits.at[self._rows, tokens].subtract(mx.where(live, self._frequency, 0))
        return logits

    def _remember(self, newest: mx.array) -> None:
        """Append the newest tokens [R, 1] to the windows."""
        if self._grows and self._room == 0:
            self._tokens = mx.pad(self._tokens, [(0, 0), (WINDOW_STEP, 0)], constant_values=-1)
            self._room = WINDOW_STEP
        self._room -= 1
        self._tokens = mx.concatenate([self._tokens[:, 1:], newest.astype(mx.int32)], axis=1)


def _looks_back(request: Generation) -> bool:
    return request.repetition_penalty != 1 or request.presence_penalty != 0 or request.frequency_penalty != 0
