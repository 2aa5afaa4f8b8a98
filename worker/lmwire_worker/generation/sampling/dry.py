"""DRY: penalties on the tokens that would continue a repetition.

A repetition is the end of a row that occurred before. Its continuation is the token that came next there. The idea:
https://github.com/oobabooga/text-generation-webui/pull/5677
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np

from lmwire_protocol.commands import Generation

DEFAULT_BREAKERS: Final = ("\n", ":", '"', "*")
MAX_REPETITION: Final = 50
"""Maximum tokens of a repetition that count. The penalty of such a one leaves its continuation no chance."""
MAX_PENALTY: Final = 1e30
"""Like the logit of a banned token, it is finite."""
ROOM: Final = 256
"""Minimum number of tokens for which a row makes room."""


class Repetitions:
    """Finds the repetitions at the end of one row, as it grows.

    A step takes time in proportion to the row's length, and little of it: each token is compared with the newest one,
    and the repetitions before them are remembered.

    Args:
        request: The row's request.
        token_bytes: Returns the bytes of a token.
    """

    def __init__(self, request: Generation, token_bytes: Callable[[int], bytes]) -> None:
        given = request.dry_sequence_breakers
        self._breakers = [text.encode() for text in (DEFAULT_BREAKERS if given is None else given)]
        self._token_bytes = token_bytes
        self._multiplier, self._base = request.dry_multiplier, request.dry_base
        self._allowed = request.dry_allowed_length
        self._range = request.dry_range
        self._before_bytes = max(map(len, self._breakers), default=1) - 1
        self.forget()

    def forget(self) -> None:
        """Forget all tokens, since the row starts again."""
        self._count = 0
        self._tokens = np.empty(ROOM, np.int32)
        self._breaks = np.empty(ROOM, bool)
        """True for a token with which a breaker ends."""
        self._lengths = np.zeros(ROOM, np.int8)
        """Tokens up to this one that equal those at the end of the row; 0 for the newest token."""
        self._before = b""
        """The newest bytes of the text, with which a breaker may begin."""

    def read(self, tokens: Sequence[int], newest: int) -> None:
        """Add the tokens that are new.

        Args:
            tokens: All tokens of the row but the newest one.
            newest: The newest token.
        """
        new = [*tokens[self._count :], newest]
        before, self._count = self._count, len(tokens) + 1
        self._make_room()
        self._tokens[before : self._count] = new
        self._breaks[before : self._count] = self._find_breaks(new)
        if len(new) > MAX_REPETITION:
            self._compare_all()
        else:
            for place in range(before, self._count):
                self._compare(place)

    def penalties(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens that continue a repetition, each once, and what to subtract from their logits."""
        last = self._count - 1
        first = max(0, self._count - self._range) if self._range else 0
        shortest = max(1, self._allowed)
        ends = first + np.flatnonzero(self._lengths[first:last] >= min(shortest, MAX_REPETITION + 1))
        lengths = np.minimum(self._lengths[ends], ends - first + 1)  # none begins before the range
        counting = (lengths >= shortest) & ~self._breaks[ends + 1]
        tokens, places = np.unique(self._tokens[ends[counting] + 1], return_inverse=True)
        longest = np.zeros(len(tokens))
        np.maximum.at(longest, places, lengths[counting])
        return tokens, np.minimum(self._multiplier * self._base ** (longest - self._allowed), MAX_PENALTY)

    def _make_room(self) -> None:
        missing = self._count - len(self._tokens)
        if missing > 0:
            more = (0, max(missing, len(self._tokens)))
            self._tokens, self._breaks, self._lengths = (
                np.pad(array, more) for array in (self._tokens, self._breaks, self._lengths)
            )

    def _compare(self, place: int) -> None:
        """Find the repetitions at the end of a row whose newest token has this place."""
        lengths = self._lengths[:place]
        if self._breaks[place]:
            lengths[:] = 0
            return
        lengths[1:] = np.minimum(lengths[:-1], MAX_REPETITION - 1) + 1
        lengths[:1] = 1
        lengths *= self._tokens[:place] == self._tokens[place]

    def _compare_all(self) -> None:
        """Find the repetitions at the end of the row anew."""
        last = self._count - 1
        self._lengths[:] = 0
        ends = np.arange(last)
        for length in range(min(MAX_REPETITION, last)):
            if self._breaks[last - length]:
                return
            ends = ends[ends >= length]
            ends = ends[self._tokens[ends - length] == self._tokens[last - length]]
            self._lengths[ends] = length + 1

    def _find_breaks(self, tokens: list[int]) -> np.ndarray:
        """Return for each token whether a breaker ends with it. A breaker may begin in earlier tokens."""
        texts = [self._token_bytes(token) for token in tokens]
        text = self._before + b"".join(texts)
        stops = len(self._before) + np.cumsum([len(part) for part in texts])
        found = np.zeros(len(tokens), bool)
        for breaker in self._breakers:
            at = text.find(breaker, max(0, len(self._before) - len(breaker) + 1))
            while at >= 0:
                token = int(np.searchsorted(stops, at + len(breaker)))
                found[token] = True
                at = text.find(breaker, max(at + 1, int(stops[token]) - len(breaker) + 1))  # one in a token suffices
        self._before = text[len(text) - self._before_bytes :] if self._before_bytes else b""
        return found


class DryPenalties:
    """DRY for the rows of a batch that ask for it. Valid until rows join or leave; each call is a step.

    Args:
        rows: Each of these rows: its index, its repetitions, and its tokens without the newest one, as they grow.
    """

    def __init__(self, rows: Sequence[tuple[int, Repetitions, list[int]]]) -> None:
        self._rows = rows

    def __call__(self, logits: mx.array, newest: mx.array) -> mx.array:
        """Return the changed logits [B, V], float32 if a token is penalized.

        Args:
            logits: The logits [B, V] after the newest tokens.
            newest: The newest token of each row [B].
        """
        if mx.default_device() == mx.cpu:
            mx.async_eval(logits)  # runs meanwhile; on a GPU a second start costs more than it saves
        last: Any = newest.tolist()
        rows, tokens, penalties = [], [], []
        for row, repetitions, history in self._rows:
            repetitions.read(history, last[row])
            continuations, values = repetitions.penalties()
            rows.append(np.full(len(continuations), row, np.int32))
            tokens.append(continuations)
            penalties.append(values.astype(np.float32))
        if not any(map(len, tokens)):
            return logits
        places = mx.array(np.concatenate(rows)), mx.array(np.concatenate(tokens))
        return logits.astype(mx.float32).at[places].subtract(mx.array(np.concatenate(penalties)))
