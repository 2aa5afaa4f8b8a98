"""The asyncio face reads in its tasks' own loop, which may be busy, or gone."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from functools import wraps

import pytest

from fake_worker import fake
from lmwire import AsyncWorker, WorkerExited
from lmwire.event_loop import EventLoop
from lmwire_protocol import Ping, events
from waits import wait_gone, wait_until_still, watch

WORDS = 30_000
"""As tokens more than a worker keeps for a host that does not read."""
MOCK = [sys.executable, "-m", "lmwire_worker", "--mock"]
Calls = list[tuple[float, Callable[[], None]]]


def in_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: object, **keywords: object) -> None:
        async def awaited() -> None:
            await test(*arguments, **keywords)

        asyncio.run(awaited())

    return run


@in_a_loop
async def test_a_busy_loop_makes_the_worker_wait_and_loses_nothing() -> None:
    async with AsyncWorker(MOCK) as worker:
        await worker.load("mock")
        stream = worker.generate("one two three ", max_tokens=WORDS)
        wait_until_still(worker.pid)
        ping = worker.stream(Ping())
        wait_until_still(worker.pid)  # it has answered, and nobody has read that yet
        pong = await ping.wait()
        assert isinstance(pong, events.PingDone)
        assert pong.state == "paused"
        assert await stream.text() == "one two three " * (WORDS // 3)


@in_a_loop
async def test_what_a_worker_wrote_before_it_died_is_read_though_the_loop_was_busy() -> None:
    async with AsyncWorker(fake("ExitsMidStream")) as worker:
        gone = watch(worker.pid)
        stream = worker.generate("one two")
        wait_gone(gone)
        os.close(gone)
        pieces: list[str] = []
        with pytest.raises(WorkerExited):
            async for piece in stream:
                pieces.append(piece.text)
        assert pieces == ["half"]


def test_a_worker_outlives_its_loop_and_leaves_nothing() -> None:
    """Which the fixture looks after."""

    async def leave() -> AsyncWorker:
        return await AsyncWorker(fake("Good")).start()

    worker = asyncio.run(leave())
    asyncio.run(worker.close())


class Pipe:
    """One that a loop reads, which rests in between as it is told."""

    def __init__(self, *rests: float | None) -> None:
        self._rests = iter(rests)
        self._reader, self._writer = os.pipe()
        self.read: asyncio.Queue[bytes] = asyncio.Queue()
        self.loop = EventLoop()
        self.loop.start(self._reader, self._read)

    def write(self) -> None:
        os.write(self._writer, b"x")

    async def close(self) -> None:
        self.loop.stop()
        await asyncio.sleep(0)
        os.close(self._reader)
        os.close(self._writer)

    def _read(self) -> float | None:
        self.read.put_nowait(os.read(self._reader, 1))
        return next(self._rests)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the loop was asked to do later, and when; it does not."""
    later: Calls = []
    monkeypatch.setattr(asyncio.SelectorEventLoop, "call_later", lambda _, *call: later.append(call))
    return later


@in_a_loop
async def test_the_loop_rests_as_long_as_it_is_told(later: Calls) -> None:
    pipe = Pipe(0.0, 0.02, 0.0)
    pipe.write()
    await pipe.read.get()
    assert later == []
    pipe.write()
    await pipe.read.get()
    ((seconds, go_on),) = later
    assert seconds == 0.02
    pipe.write()
    for _ in range(3):
        await asyncio.sleep(0)
    assert pipe.read.empty()
    go_on()
    await pipe.read.get()
    await pipe.close()


@in_a_loop
async def test_the_loop_looks_no_more_once_all_is_read(later: Calls) -> None:
    pipe = Pipe(None)
    pipe.write()
    await pipe.read.get()
    pipe.write()
    for _ in range(3):
        await asyncio.sleep(0)
    assert (pipe.read.empty(), later) == (True, [])
    await pipe.close()


@in_a_loop
async def test_a_rest_that_ends_after_the_pipe_was_left_reads_nothing(later: Calls) -> None:
    pipe = Pipe(0.02)
    pipe.write()
    await pipe.read.get()
    pipe.write()
    await pipe.close()
    ((_, go_on),) = later
    go_on()
    await asyncio.sleep(0)
    assert pipe.read.empty()
