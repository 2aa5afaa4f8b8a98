"""Several streams merged into one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

AT_ONCE: Final = 32
"""Most streams of one request that run together, so that other requests can run and those that wait take no memory."""


async def merge_streams(
    open_stream: Callable[[int], AsyncIterator[T]], count: int, at_once: int = AT_ONCE
) -> AsyncGenerator[T, None]:
    """Yield the items of several streams as they come. If one fails, or this iterator is closed, cancel the others.

    Args:
        open_stream: Returns the stream with a number. It is called when the stream's turn has come.
        count: Number of streams.
        at_once: Most streams that run together.
    """
    if count == 1:
        async for item in open_stream(0):
            yield item
        return
    arrivals: asyncio.Queue[T | asyncio.Task[None]] = asyncio.Queue()
    readers: set[asyncio.Task[None]] = set()
    waiting = iter(range(count))

    async def read(number: int) -> None:
        async for item in open_stream(number):
            arrivals.put_nowait(item)

    def start(most: int) -> int:
        """Start the next readers, and return their number."""
        started = [asyncio.create_task(read(number)) for number in islice(waiting, most)]
        for reader in started:
            readers.add(reader)
            reader.add_done_callback(readers.discard)
            reader.add_done_callback(arrivals.put_nowait)
        return len(started)

    try:
        running = start(at_once)
        while running:
            arrival = await arrivals.get()
            if isinstance(arrival, asyncio.Task):
                arrival.result()
                running += start(1) - 1
            else:
                yield arrival
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
