"""The thread for the work on large bodies, beside the event loop, which serves the other requests meanwhile."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from ...pool.fair_queue import FairQueue

T = TypeVar("T")

AT_ONCE: Final = 1
"""Large bodies that are worked on at once: more threads would take turns with the event loop, and finish no sooner. The
others wait as they were sent, so each takes only what its client sent."""


class WorkThread:
    """The thread, which serves clients in turn."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="lmwire-body")
        self._queue = FairQueue(lambda: AT_ONCE - 1)  # the queue admits one more than it has rows

    async def run(self, client: Hashable, work: Callable[[], T]) -> T:
        """Return the result of some work, once it is the client's turn.

        A request that is cancelled meanwhile leaves the queue. Work that runs goes on to its end, and keeps the thread.

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
