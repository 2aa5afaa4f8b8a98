"""Tokens that are handed on several at a time, while all else is handed on as it comes.

To wake whoever waits costs more than what came, in this process and in those that it passes the tokens on to. An end
is never kept, a first token for less long, and the worker never has to wait for its reader.
"""

from collections.abc import Iterable
from math import inf
from typing import Final

from lmwire_protocol import events

from .session import Arrival

_KEPT_S: Final = 0.03
"""33 times a second is more than anyone reads."""
_EACH_S: Final = 0.00625
_MOST_KEPT_S: Final = 0.05
"""For each request with a token, if that is longer, and at most for all: each has somebody to wake."""
_EACH_BESIDE_UNBEGUN_S: Final = 0.00125
_KEPT_BESIDE_UNBEGUN_S: Final = 0.02
"""For each request with a token, and for all, while another one still waits for its first, which looks like any."""
_TOKEN: Final = b'{"event":"token",'
"""How lmwire's worker begins their lines. Tokens that another one writes differently are handed on as they come."""


class Coalescing:
    """Keeps what was read until it is due. Its owner makes one call at a time."""

    def __init__(self) -> None:
        self._kept = b""
        self._until = -inf
        self._unbegun: set[str] = set()

    @property
    def due_at(self) -> float:
        """When what is kept has to be handed on; `inf` if nothing is."""
        return self._until if self._kept else inf

    def open(self, id: str) -> None:
        """A request is sent, whose first token may be the next that comes."""
        self._unbegun.add(id)
        self.end()

    def take(self, data: bytes, now: float) -> bytes:
        """What is to be handed on `now` that `data` was read: all that is kept, or nothing."""
        self._kept += data
        if now < self._until and _is_tokens(data):
            return b""
        taken, self._kept = self._kept, b""
        return taken

    def after(self, arrivals: Iterable[Arrival], now: float) -> None:
        """These were handed on: for how long tokens that follow may be kept."""
        streams = 0
        for id, arrived in arrivals:
            last = arrived[-1]
            streams += isinstance(last, events.Token)
            if not isinstance(last, events.Progress):
                self._unbegun.discard(id)
        if self._unbegun:
            kept_s = min(streams * _EACH_BESIDE_UNBEGUN_S, _KEPT_BESIDE_UNBEGUN_S)
        else:
            kept_s = min(max(_KEPT_S, streams * _EACH_S), _MOST_KEPT_S)
        self._until = now + kept_s

    def end(self) -> None:
        """What is kept is due."""
        self._until = -inf


def _is_tokens(data: bytes) -> bool:
    """Whether these are whole lines of tokens, or nothing."""
    return data[-1:] in (b"", b"\n") and data.count(_TOKEN) == data.count(b"\n")
