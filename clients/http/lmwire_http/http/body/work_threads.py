"""Threads for the work on large bodies, beside the event loop, which serves the other requests meanwhile."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from ...pool.fair_queue import FairQueue

T = TypeVar("T")

THREADS: Final = 2
"""Large bodies that are decoded at once. The others wait as they were sent, so each takes only what its client sent."""


class WorkThreads:
    """A few threads, which serve clients in turn."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="lmwire-body")
        self._queue = FairQueue(lambda: THREADS - 1)  # the queue admits one more than it has rows

    async def run(self, client: Hashable, work: Callable[[], T]) -> T:
        """Return the result of some work, once it is the client's turn.

        A request that is cancelled meanwhile leaves the queue. Work that runs goes on to its end, and keeps its thread.

        Args:
            client: The client that sent the request.
            work: The work. It does not use the event loop.
        """
        async with self._queue.enter(client, rows=1):
            running = asyncio.get_running_loop().run_in_executor(self._executor, work)
            try:
                return await asyncio.shield(running)
            finally:
                if not running.done():
                    await asyncio.wait((running,))
