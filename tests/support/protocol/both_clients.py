"""The threaded and the asyncio client with one interface: tests are written for asyncio, and run on both."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Self

import pytest

from lmwire import Answer, AsyncWorker, ShutdownTimeouts, Worker
from lmwire.transport.child import spawn_process
from support.process.worker_process import SECONDS
from support.process.worker_thread import on_thread


class AwaitedStream:
    """A `Stream`, a `Transcript` or a `Speech` with the interface of its `Async` counterpart. It blocks."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        self._stream.__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for delta in self._stream:
            yield delta

    async def read_available(self) -> list[Any]:
        return self._stream.read_available()

    async def text(self) -> str:
        return self._stream.text()

    async def answer(self) -> Answer:
        return self._stream.answer()

    async def answers(self) -> list[Answer]:
        return self._stream.answers()

    async def collect(self) -> list[Any]:
        return self._stream.collect()

    async def wav(self) -> bytes:
        return self._stream.wav()

    async def wait(self) -> Any:
        return self._stream.wait()


class AwaitedWorker:
    """A `Worker` with the interface of an `AsyncWorker`. It blocks."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._worker = Worker(*arguments, **keywords)

    async def start(self) -> Self:
        self._worker.start()
        return self

    def __getattr__(self, name: str) -> Any:
        value: Any = getattr(self._worker, name)
        if name in ("chat", "generate", "stream", "transcribe", "speak"):
            return lambda *arguments, **keywords: AwaitedStream(value(*arguments, **keywords))
        return _awaited(value) if callable(value) else value

    async def __aenter__(self) -> Self:
        self._worker.__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._worker.__exit__(*error)


def _awaited(call: Callable[..., Any]) -> Callable[..., Any]:
    async def awaited(*arguments: Any, **keywords: Any) -> Any:
        return call(*arguments, **keywords)

    return awaited


CLIENTS = [AwaitedWorker, AsyncWorker]
PROCESS = {"spawn": spawn_process}
"""Keywords of a worker that must be a process: for what a thread does not have, such as signals."""
UNHURRIED = ShutdownTimeouts(SECONDS, SECONDS, SECONDS)
"""Time for a worker that obeys, for a test of its exit code: no step follows because the machine is slow."""
MakeWorker = Callable[..., Any]


def on_both_clients(test: Callable[[MakeWorker], Awaitable[None]]) -> Callable[[MakeWorker], None]:
    """Run a test, written for asyncio, on both clients. It makes its worker with its argument, on a thread."""

    @pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
    def run(make_worker: MakeWorker) -> None:
        asyncio.run(asyncio.wait_for(test(partial(make_worker, spawn=on_thread)), SECONDS))

    return run


def on_one_client(test: Callable[[MakeWorker], Awaitable[None]]) -> Callable[[], None]:
    """Run a test of code that both clients share, as `on_both_clients` does, on the threaded client alone."""

    def run() -> None:
        asyncio.run(asyncio.wait_for(test(partial(AwaitedWorker, spawn=on_thread)), SECONDS))

    return run


def public_methods(client: type) -> dict[str, list[str]]:
    """Return a class's own public methods, with the names of their parameters."""
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in vars(client).items()
        if callable(method) and not name.startswith("_")
    }
