"""For how long a worker's output need not be read: tokens of many requests are read several at a time.

To wake for each costs more than what comes, in this process and in those that it hands the tokens on to. But nobody is
made to wait for the beginning of an answer, or for an end that can be foreseen.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from lmwire_protocol import Command, events
from lmwire_protocol.commands import Generation

from .session import Arrival, Event

_MANY: Final = 4
"""Requests with a token in one read."""
_REST_S: Final = 0.03
"""33 times a second is more than anyone reads."""
_EACH_S: Final = 0.00125
_LONGEST_S: Final = 0.02
"""For each request with a token, and for all, while another one still waits for its first."""


class Rests:
    """Knows which requests are open, and how far they are. Its owner makes one call at a time."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        """Tokens that an open request may still get."""
        self._read_at: dict[str, float] = {}
        """When the last of its tokens were read."""
        self._unbegun: set[str] = set()

    def open(self, id: str, command: Command) -> None:
        """A request is sent."""
        self._left[id] = _limit(command)
        self._unbegun.add(id)

    def after(self, arrivals: Iterable[Arrival], now: float) -> float:
        """The seconds that what follows these, which were read `now`, may wait."""
        streams = 0
        close_s = inf
        for id, arrived in arrivals:
            last = arrived[-1]
            if not isinstance(last, events.Progress):
                self._unbegun.discard(id)
            if isinstance(last, events.Token) and id in self._left:
                streams += 1
                close_s = min(close_s, self._close_to_its_end_in(id, arrived, now))
            elif isinstance(last, events.Done | events.Error):
                self._left.pop(id, None)
                self._read_at.pop(id, None)
        if streams < _MANY:
            return 0.0
        return min(close_s, min(streams * _EACH_S, _LONGEST_S) if self._unbegun else _REST_S)

    def _close_to_its_end_in(self, id: str, arrived: Sequence[Event], now: float) -> float:
        """In how many seconds the token before its last one is due, if those to come take as long as these did.

        The last one itself is then read as it comes. So is the second one, as nothing is known of its time yet.
        """
        left = self._left[id]
        if left == inf:
            return inf
        came = sum([len(event.token_ids) for event in arrived if isinstance(event, events.Token)])
        left = self._left[id] = max(0, left - came)
        before, self._read_at[id] = self._read_at.get(id, now), now
        return max(0, left - 1) * (now - before) / max(1, came)


def _limit(command: Command) -> float:
    """The tokens that it may get."""
    if isinstance(command, Generation) and command.max_tokens is not None:
        return command.max_tokens * command.n
    return inf
