"""The asyncio client reads in its tasks' own event loop, which may be busy or closed."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from math import inf

import pytest

from lmwire import AsyncWorker, WorkerExited
from lmwire.transport import event_loop_reader
from lmwire.transport.event_loop_reader import EventLoopReader
from lmwire_protocol import Ping, events
from support.process.fake_worker import fake
from support.process.process_waits import wait_gone, wait_until_still, watch
from support.process.worker_thread import on_thread

WORDS = 30_000
"""More tokens than a worker buffers for a host that does not read."""
MOCK = [sys.executable, "-P", "-m", "lmwire_worker", "--mock"]
Calls = list[tuple[float, Callable[[], None]]]


def in_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: object, **keywords: object) -> None:
        async def awaited() -> None:
            await test(*arguments, **keywords)

        asyncio.run(awaited())

    return run


@pytest.mark.slow
@in_a_loop
async def test_a_busy_loop_makes_the_worker_wait_and_loses_nothing() -> None:
    async with AsyncWorker(MOCK) as worker:
        await worker.load("mock")
        stream = worker.generate("one two three ", max_tokens=WORDS)
        wait_until_still(worker.pid)
        ping = worker.stream(Ping())
        wait_until_still(worker.pid)  # the reply is in the pipe, unread
        pong = await ping.wait()
        assert isinstance(pong, events.PingDone)
        assert pong.state == "paused"
        assert await stream.text() == "one two three " * (WORDS // 3)


@pytest.mark.slow
@in_a_loop
async def test_output_before_a_death_is_read_even_if_the_loop_was_busy() -> None:
    async with AsyncWorker(fake("ExitsMidStream")) as worker:
        gone = watch(worker.pid)
        stream = worker.generate("one two")
        wait_gone(gone)
        os.close(gone)
        deltas: list[str] = []
        with pytest.raises(WorkerExited):
            async for delta in stream:
                deltas.append(delta.text)
        assert deltas == ["half"]


@in_a_loop
async def test_a_token_is_delivered_even_if_nothing_follows() -> None:
    async with AsyncWorker(fake("PlaysItsPrompt"), spawn=on_thread) as worker:
        stream = worker.generate("[]")
        deltas = aiter(stream)
        word = json.dumps([{"event": "token", "id": stream.id, "token": "la", "token_ids": [1]}])
        for _ in range(3):
            worker.generate(word)
            assert (await anext(deltas)).text == "la"


def test_a_worker_that_outlives_its_loop_leaks_nothing() -> None:
    """Check this with the fixture of conftest.py."""

    async def leave() -> AsyncWorker:
        return await AsyncWorker(fake("Good"), spawn=on_thread).start()

    worker = asyncio.run(leave())
    asyncio.run(worker.close())


class Pipe:
    """A pipe that an event loop reads. Each read returns the next of the given due times."""

    def __init__(self, *due_at: float | None) -> None:
        self._due_at = iter(due_at)
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.read: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.loop = EventLoopReader()
        self.loop.start(self._reader, self._read)

    def write(self) -> None:
        os.write(self._writer, b"x")

    async def close(self) -> None:
        self.loop.stop()
        await asyncio.sleep(0)
        os.close(self._reader)
        os.close(self._writer)

    def _read(self) -> float | None:
        try:
            self.read.put_nowait(os.read(self._reader, 1))
        except BlockingIOError:
            self.read.put_nowait(None)
        return next(self._due_at)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return the calls that the loop should make later, with their delays. It makes none, and time stands still."""
    later: Calls = []
    monkeypatch.setattr(asyncio.SelectorEventLoop, "call_later", lambda _, *call: later.append(call) or later)
    monkeypatch.setattr(event_loop_reader, "monotonic", lambda: 100.0)
    return later


@in_a_loop
async def test_the_loop_reads_again_when_due_without_new_data(later: Calls) -> None:
    pipe = Pipe(inf, 100.5, 101.0, inf)
    pipe.write()
    await pipe.read.get()
    assert later == []
    for _ in range(2):  # the due time of buffered output does not move
        pipe.write()
        await pipe.read.get()
    ((seconds, due),) = later
    assert seconds == 0.5
    due()
    assert await pipe.read.get() is None
    assert len(later) == 1
    await pipe.close()


@in_a_loop
async def test_a_later_due_time_causes_one_more_read(later: Calls) -> None:
    pipe = Pipe(100.5, 100.25)
    pipe.write()
    await pipe.read.get()
    later.pop()[1]()
    await pipe.read.get()
    ((seconds, _),) = later
    assert seconds == 0.25
    await pipe.close()


@in_a_loop
async def test_the_loop_stops_watching_at_the_end(later: Calls) -> None:
    pipe = Pipe(None)
    pipe.write()
    await pipe.read.get()
    pipe.write()
    for _ in range(3):
        await asyncio.sleep(0)
    assert (pipe.read.empty(), later) == (True, [])
    await pipe.close()


@in_a_loop
async def test_a_timer_after_the_stop_reads_nothing(later: Calls) -> None:
    pipe = Pipe(100.5)
    pipe.write()
    await pipe.read.get()
    pipe.write()
    await pipe.close()
    ((_, due),) = later
    due()
    assert pipe.read.empty()
