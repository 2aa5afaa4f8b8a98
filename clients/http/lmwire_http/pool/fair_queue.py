"""A model's queue: whose request goes to its workers next.

Each client has a line of its own, first in, first out. Between the lines it is fair queueing: each is given rows in
turn, so a client with few requests, or with small ones, does not wait for all that another has sent. Rows are the
answers that a request asks for. https://en.wikipedia.org/wiki/Weighted_fair_queueing
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Final

AHEAD: Final = 8
"""One row in so many more may be asked for than a worker has, so that it has the next request when one ends."""


@dataclass(eq=False, slots=True)
class Turn:
    """A request in the queue, and then on a worker."""

    client: Hashable
    rows: int
    number: int
    came_at: float = field(default_factory=monotonic)
    begun: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    waited_s: float = 0.0
    """How long it was queued."""
    over: bool = False


class Turns:
    """Lets so many requests through that the workers are never without one, and no more.

    Args:
        rows: Returns how many rows the workers have now; 0 while there is none.
    """

    def __init__(self, rows: Callable[[], int]) -> None:
        self._rows = rows
        self._at_work = 0
        """Rows of those that were let through."""
        self._lines: dict[Hashable, deque[Turn]] = {}
        """Those that wait, by client."""
        self._given: dict[Hashable, float] = {}
        """Rows that each client has had since there has been a queue, those that it came too late for included."""
        self._now = 0.0
        """Rows that each line would have had, had all been given out one by one, in turn."""
        self._numbers = count()

    @asynccontextmanager
    async def turn(self, client: Hashable, rows: int) -> AsyncIterator[Turn]:
        """Waits for a request's turn, which lasts for as long as the block, or until its `end` is called.

        Args:
            client: Whose request it is.
            rows: Answers that it asks for; with 0 it does not wait.
        """
        turn = Turn(client, rows, next(self._numbers))
        try:
            if rows:
                self._line_up(turn)
                self.let_through()
                await turn.begun
                turn.waited_s = monotonic() - turn.came_at
            yield turn
        finally:
            self.end(turn)

    def end(self, turn: Turn) -> None:
        """Makes room for others: the worker has ended the request, or its client has left."""
        if turn.over or not turn.rows:
            return
        turn.over = True
        if turn in self._lines.get(turn.client, ()):
            self._lines[turn.client].remove(turn)
            self._close_empty(turn.client)
        else:
            self._at_work -= turn.rows
        self.let_through()

    def _line_up(self, turn: Turn) -> None:
        if turn.client not in self._lines:
            self._given = {one: rows for one, rows in self._given.items() if one in self._lines or rows > self._now}
            self._given.setdefault(turn.client, self._now)
            self._lines[turn.client] = deque()
        self._lines[turn.client].append(turn)

    def let_through(self) -> None:
        """Lets those through for whom there is room now. To be called when there are more rows than before."""
        while self._lines and self._fits(turn := self._next()):
            self._lines[turn.client].popleft()
            self._now += turn.rows / len(self._lines)
            self._given[turn.client] += turn.rows
            self._at_work += turn.rows
            self._close_empty(turn.client)
            if not turn.begun.done():  # else it was cancelled just now, and ends by itself
                turn.begun.set_result(None)

    def _next(self) -> Turn:
        """The request that would have all its rows first, had they been given out one by one."""
        heads = (line[0] for line in self._lines.values())
        return min(heads, key=lambda turn: (self._given[turn.client] + turn.rows, turn.number))

    def _fits(self, turn: Turn) -> bool:
        rows = self._rows()
        return self._at_work < max(1, rows) or self._at_work + turn.rows <= rows + max(1, rows // AHEAD)

    def _close_empty(self, client: Hashable) -> None:
        if not self._lines[client]:
            del self._lines[client]
        if not self._lines:  # nobody waits, so nobody has had too much
            self._given.clear()
            self._now = 0.0
