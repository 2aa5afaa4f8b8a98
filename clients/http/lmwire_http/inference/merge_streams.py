"""Several streams merged into one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def merge_streams(sources: Sequence[AsyncIterator[T]]) -> AsyncGenerator[T, None]:
    """Yield the items of all sources as they come. If one fails, or this iterator is closed, cancel the others."""
    if len(sources) == 1:
        async for item in sources[0]:
            yield item
        return
    arrivals: asyncio.Queue[T | asyncio.Task[None]] = asyncio.Queue()

    async def read(source: AsyncIterator[T]) -> None:
        async for item in source:
            arrivals.put_nowait(item)

    readers = [asyncio.create_task(read(source)) for source in sources]
    for reader in readers:
        reader.add_done_callback(arrivals.put_nowait)
    try:
        running = len(readers)
        while running:
            arrival = await arrivals.get()
            if isinstance(arrival, asyncio.Task):
                arrival.result()
                running -= 1
            else:
                yield arrival
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
