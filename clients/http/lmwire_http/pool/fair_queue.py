"""A model's request queue, fair between clients.

Each client has a first-in, first-out queue. Weighted fair queueing picks between the queues: each client receives
rows in turn, so a client with few or small requests does not wait for all requests of another. A request takes as
many rows as it asks for answers. https://en.wikipedia.org/wiki/Weighted_fair_queueing
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Final

LOOKAHEAD_DIVISOR: Final = 8
"""Rows of capacity for each row that is admitted ahead, so that a freed row finds its next request at the worker."""


@dataclass(eq=False, slots=True)
class QueuedRequest:
    """A request in the queue, and then on a worker."""

    client: Hashable
    rows: int
    sequence: int
    queued_at: float = field(default_factory=monotonic)
    admitted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    waited_s: float = 0.0
    """Time in the queue, in seconds."""
    finished: bool = False


class FairQueue:
    """Admits enough requests to keep the workers busy, and no more.

    Args:
        capacity: Returns the number of rows that the workers have now; 0 while none runs.
    """

    def __init__(self, capacity: Callable[[], int]) -> None:
        self._capacity = capacity
        self._running_rows = 0
        """Number of rows of the admitted requests."""
        self._waiting: dict[Hashable, deque[QueuedRequest]] = {}
        """Waiting requests of each client."""
        self._served: dict[Hashable, float] = {}
        """Rows that each client has received since the queue was last empty, in virtual time."""
        self._virtual_time = 0.0
        """Rows that each waiting client would have received if they were handed out one by one."""
        self._sequences = count()

    @asynccontextmanager
    async def enter(self, client: Hashable, rows: int) -> AsyncGenerator[QueuedRequest]:
        """Wait for a request's turn, and hold its rows until the block ends or `finish` is called.

        Args:
            client: The client that sent the request.
            rows: Number of answers; a request with 0 does not wait.
        """
        request = QueuedRequest(client, rows, next(self._sequences))
        try:
            if rows:
                self._enqueue(request)
                self.admit_waiting()
                await request.admitted
                request.waited_s = monotonic() - request.queued_at
            yield request
        finally:
            self.finish(request)

    def finish(self, request: QueuedRequest) -> None:
        """Free a request's rows: the worker has finished it, or its client has disconnected."""
        if request.finished or not request.rows:
            return
        request.finished = True
        if request in self._waiting.get(request.client, ()):
            self._waiting[request.client].remove(request)
            self._drop_empty_queue(request.client)
        else:
            self._running_rows -= request.rows
        self.admit_waiting()

    def _enqueue(self, request: QueuedRequest) -> None:
        if request.client not in self._waiting:
            self._served = {
                one: rows for one, rows in self._served.items() if one in self._waiting or rows > self._virtual_time
            }
            self._served.setdefault(request.client, self._virtual_time)
            self._waiting[request.client] = deque()
        self._waiting[request.client].append(request)

    def admit_waiting(self) -> None:
        """Admit the requests that fit. Call it whenever the capacity has grown."""
        while self._waiting and self._fits(request := self._next()):
            self._waiting[request.client].popleft()
            self._virtual_time += request.rows / len(self._waiting)
            self._served[request.client] += request.rows
            self._running_rows += request.rows
            self._drop_empty_queue(request.client)
            if not request.admitted.done():  # a request that was just cancelled finishes by itself
                request.admitted.set_result(None)

    def _next(self) -> QueuedRequest:
        """Return the request that would have all its rows first if rows were handed out one by one."""
        heads = (line[0] for line in self._waiting.values())
        return min(heads, key=lambda request: (self._served[request.client] + request.rows, request.sequence))

    def _fits(self, request: QueuedRequest) -> bool:
        rows = self._capacity()
        return self._running_rows < max(1, rows) or self._running_rows + request.rows <= rows + max(
            1, rows // LOOKAHEAD_DIVISOR
        )

    def _drop_empty_queue(self, client: Hashable) -> None:
        if not self._waiting[client]:
            del self._waiting[client]
        if not self._waiting:  # without a queue no client has received too much
            self._served.clear()
            self._virtual_time = 0.0
