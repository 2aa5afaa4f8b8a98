"""The asyncio face reads in its tasks' own loop, which may be busy, or gone."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from math import inf

import pytest

from fake_worker import fake
from lmwire import AsyncWorker, WorkerExited
from lmwire.transport import event_loop_reader
from lmwire.transport.event_loop_reader import EventLoopReader
from lmwire_protocol import Ping, events
from waits import wait_gone, wait_until_still, watch

WORDS = 30_000
"""As tokens more than a worker keeps for a host that does not read."""
MOCK = [sys.executable, "-P", "-m", "lmwire_worker", "--mock"]
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


@in_a_loop
async def test_a_token_comes_though_nothing_follows() -> None:
    async with AsyncWorker(fake("PlaysItsPrompt")) as worker:
        stream = worker.generate("[]")
        pieces = aiter(stream)
        word = json.dumps([{"event": "token", "id": stream.id, "token": "la", "token_ids": [1]}])
        for _ in range(3):
            worker.generate(word)
            assert (await anext(pieces)).text == "la"


def test_a_worker_outlives_its_loop_and_leaves_nothing() -> None:
    """Which the fixture looks after."""

    async def leave() -> AsyncWorker:
        return await AsyncWorker(fake("Good")).start()

    worker = asyncio.run(leave())
    asyncio.run(worker.close())


class Pipe:
    """One that a loop reads, and where it is told each time when to read again."""

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
    """What the loop was asked to do later, and when; it does not. No time passes."""
    later: Calls = []
    monkeypatch.setattr(asyncio.SelectorEventLoop, "call_later", lambda _, *call: later.append(call) or later)
    monkeypatch.setattr(event_loop_reader, "monotonic", lambda: 100.0)
    return later


@in_a_loop
async def test_the_loop_reads_again_when_it_is_due_though_nothing_has_come(later: Calls) -> None:
    pipe = Pipe(inf, 100.5, 101.0, inf)
    pipe.write()
    await pipe.read.get()
    assert later == []
    for _ in range(2):  # what is kept stays due when it was
        pipe.write()
        await pipe.read.get()
    ((seconds, due),) = later
    assert seconds == 0.5
    due()
    assert await pipe.read.get() is None
    assert len(later) == 1
    await pipe.close()


@in_a_loop
async def test_what_is_due_later_than_it_was_is_asked_for_once_more(later: Calls) -> None:
    pipe = Pipe(100.5, 100.25)
    pipe.write()
    await pipe.read.get()
    later.pop()[1]()
    await pipe.read.get()
    ((seconds, _),) = later
    assert seconds == 0.25
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
async def test_what_is_due_after_the_pipe_was_left_reads_nothing(later: Calls) -> None:
    pipe = Pipe(100.5)
    pipe.write()
    await pipe.read.get()
    pipe.write()
    await pipe.close()
    ((_, due),) = later
    due()
    assert pipe.read.empty()
