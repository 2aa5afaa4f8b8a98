"""Merged streams: few are open at once, the others take no memory, and all end together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from lmwire_http.inference.generation import merge_streams
from support.http.http_pool import awaited


class Streams:
    """Streams that count how many of them are open."""

    def __init__(self) -> None:
        self.opened = self.running = self.most = 0

    async def open(self, number: int) -> AsyncIterator[tuple[int, str]]:
        self.opened += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for item in "ab":
                await asyncio.sleep(0)
                yield number, item
        finally:
            self.running -= 1


@pytest.mark.parametrize("count", [1, 2, 1000])
@awaited
async def test_all_items_come_and_few_streams_are_open_at_once(count: int) -> None:
    streams, tasks = Streams(), list[int]()
    async with aclosing(merge_streams(streams.open, count, at_once=4)) as items:
        found: list[tuple[int, str]] = []
        async for item in items:
            found.append(item)
            tasks.append(len(asyncio.all_tasks()))
    assert sorted(found) == [(number, item) for number in range(count) for item in "ab"]
    assert (streams.most, streams.running) == (min(count, 4), 0)
    assert max(tasks) <= 1 + 4 + 1


@awaited
async def test_a_stream_is_opened_when_its_turn_has_come() -> None:
    streams = Streams()
    async with aclosing(merge_streams(streams.open, 1000, at_once=4)) as items:
        await anext(items)
        assert streams.opened == 4
    assert streams.running == 0


@awaited
async def test_a_failure_ends_all_streams() -> None:
    streams = Streams()

    async def open_stream(number: int) -> AsyncIterator[tuple[int, str]]:
        if number == 5:
            raise ValueError("it fails")
        async for item in streams.open(number):
            yield item

    with pytest.raises(ValueError, match="it fails"):
        async with aclosing(merge_streams(open_stream, 1000, at_once=4)) as items:
            async for _ in items:
                pass
    assert streams.running == 0
    assert streams.opened < 10
