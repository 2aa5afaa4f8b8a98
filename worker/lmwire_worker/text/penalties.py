"""The repetition penalty for a whole batch, on the device, so that no step waits for the token before it."""

from collections.abc import Sequence
from typing import Final

import mlx.core as mx

from lmwire_protocol.commands import Generation

ROOM: Final = 256
"""Tokens by which the memory of a row without a window grows at a time, so that shapes change seldom."""
UNLIMITED: Final = 2**30


class RepetitionPenalty:
    """Divides (multiplies, when negative) the logits of each row's recent tokens by the row's penalty.

    Args:
        requests: Of each row; a row whose penalty is 1 is left alone.
        histories: Of each row, prompt and answer so far, without the token that the next call is told.
    """

    def __init__(self, requests: Sequence[Generation], histories: Sequence[list[int]]) -> None:
        rows = [row for row, request in enumerate(requests) if request.repetition_penalty != 1]
        self._active = bool(rows)
        if not rows:
            return
        self._rows = None if len(rows) == len(requests) else mx.array(rows)
        self._penalties = mx.array([requests[row].repetition_penalty for row in rows], mx.float32)[:, None]
        windows = [min(requests[row].penalty_window, UNLIMITED) or UNLIMITED for row in rows]
        self._windows = mx.array(windows, mx.int32)[:, None]
        self._room = ROOM
        width = max(min(len(histories[row]) + ROOM, window) for row, window in zip(rows, windows, strict=True))
        self._grows = max(windows) > width
        # The newest token is the last; -1 stands for none.
        self._recent = mx.array([([-1] * width + histories[row])[-width:] for row in rows], mx.int32)

    def __call__(self, logits: mx.array, newest: mx.array) -> mx.array:
        """Logits [B, V] that follow the tokens `newest` [B] → penalised logits; float32 where a row has a penalty."""
        if not self._active:
            return logits
        self._remember(newest if self._rows is None else newest[self._rows])
        taken = (logits if self._rows is None else logits[self._rows]).astype(mx.float32)
        width = self._recent.shape[1]
        live = (self._recent >= 0) & (mx.arange(width) >= width - self._windows)
        # Idle places repeat the newest token: a token penalised twice over gets the same value twice.
        tokens = mx.where(live, self._recent, self._recent[:, -1:])
        values = mx.take_along_axis(taken, tokens, axis=1)
        values = mx.where(values < 0, values * self._penalties, values / self._penalties)
        taken = mx.put_along_axis(taken, tokens, values, axis=1)
        if self._rows is None:
            return taken
        logits = logits.astype(mx.float32)
        logits[self._rows] = taken
        return logits

    def _remember(self, newest: mx.array) -> None:
        if self._grows and self._room == 0:
            self._recent = mx.pad(self._recent, [(0, 0), (ROOM, 0)], constant_values=-1)
            self._room = ROOM
        self._room -= 1
        self._recent = mx.concatenate([self._recent[:, 1:], newest.astype(mx.int32)[:, None]], axis=1)
