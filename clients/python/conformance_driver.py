"""The Python client under `lmwire conformance host`: python conformance_driver.py [--asyncio].

It does what protocol/lmwire_conformance/HOSTS.md asks of a driver: instructions come on stdin, what was seen goes to
stdout, both as JSON Lines. It drives `lmwire.Worker`, with --asyncio `lmwire.AsyncWorker`.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from lmwire import (
    Answer,
    AsyncStream,
    AsyncSupervisor,
    AsyncWorker,
    CallPiece,
    LmwireError,
    Patience,
    Piece,
    RequestFailed,
    StartFailed,
    Stream,
    Supervisor,
    Worker,
)
from lmwire_protocol import decode_command
from lmwire_protocol.events import ResultDone

PATIENCE = Patience(quit=1.0, eof=1.0, term=1.0)

_lock = threading.Lock()


def say(saw: str, **members: Any) -> None:
    """Prints one thing that was seen."""
    with _lock:
        sys.stdout.write(json.dumps({"saw": saw, **members}) + "\n")
        sys.stdout.flush()


def say_piece(name: str, piece: Piece | CallPiece) -> None:
    """What has come of an answer. Calls are told when they are whole, with the end."""
    if isinstance(piece, Piece):
        channel = {"channel": "reasoning"} if piece.reasoning else {}
        logprobs = {"logprobs": msgspec.to_builtins(piece.logprobs)} if piece.logprobs else {}
        say("text", name=name, choice=piece.choice, text=piece.text or piece.reasoning, **channel, **logprobs)


def say_done(name: str, result: Any, answers: Sequence[Answer]) -> None:
    """A request's success; only `generate` and `chat` have answers."""
    for choice, answer in enumerate(answers):
        for call in answer.tool_calls:
            say("tool_call", name=name, choice=choice, call=asdict(call))
    reasons = [answer.finish_reason for answer in answers]
    say(
        "done",
        name=name,
        **({"finish_reason": result.finish_reason} if reasons else {}),
        **({"choices": reasons} if len(reasons) > 1 else {}),
    )


def say_failed(name: str, error: LmwireError) -> None:
    """A request's failure."""
    if isinstance(error, RequestFailed):
        say("failed", name=name, code=error.code, retryable=error.retryable)
    else:  # a supervisor's refusals have no code: there is no worker
        say("failed", name=name, code=getattr(error, "code", "worker_lost"))


class ThreadsDriver:
    """A thread for each request."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._streams: dict[str, Stream] = {}

    def run(self) -> None:
        for line in sys.stdin:
            instruction = json.loads(line)
            getattr(self, instruction.pop("do"))(**instruction)

    def start(self, timeout: float = 30.0, restart: bool = False) -> None:
        def make() -> Worker:
            return Worker(self._command, start_timeout=timeout, patience=PATIENCE)

        if restart:
            supervisor = Supervisor(lambda _: None, make=make)
            self._worker, self._end, start = supervisor.worker, supervisor.close, supervisor.worker
        else:
            worker = make()
            self._worker, self._end, start = lambda: worker, worker.close, worker.start
        try:
            start()
        except StartFailed:
            say("start_failed")
        else:
            say("started")

    def request(self, name: str, command: dict[str, Any], timeout: float | None = None) -> None:
        try:
            stream = self._worker().stream(decode_command(command), timeout=timeout)
        except LmwireError as error:
            say_failed(name, error)
        else:
            self._streams[name] = stream
            threading.Thread(target=self._read, args=(name, stream)).start()

    def _read(self, name: str, stream: Stream) -> None:
        try:
            for piece in stream:
                say_piece(name, piece)
            result = stream.result
            say_done(name, result, stream.answers() if isinstance(result, ResultDone) else [])
        except LmwireError as error:
            say_failed(name, error)

    def cancel(self, name: str) -> None:
        self._streams[name].cancel()

    def close(self) -> None:
        self._end()
        say("closed")


class TasksDriver:
    """A task for each request."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._streams: dict[str, AsyncStream] = {}

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            while line := await asyncio.to_thread(sys.stdin.readline):
                instruction = json.loads(line)
                await getattr(self, instruction.pop("do"))(**instruction)

    async def start(self, timeout: float = 30.0, restart: bool = False) -> None:
        def make() -> AsyncWorker:
            return AsyncWorker(self._command, start_timeout=timeout, patience=PATIENCE)

        if restart:
            supervisor = AsyncSupervisor(lambda _: asyncio.sleep(0), make=make)
            self._worker, self._end, start = supervisor.worker, supervisor.close, supervisor.worker
        else:
            worker = make()
            self._worker, self._end, start = lambda: asyncio.sleep(0, worker), worker.close, worker.start
        try:
            await start()
        except StartFailed:
            say("start_failed")
        else:
            say("started")

    async def request(self, name: str, command: dict[str, Any], timeout: float | None = None) -> None:
        try:
            stream = (await self._worker()).stream(decode_command(command), timeout=timeout)
        except LmwireError as error:
            say_failed(name, error)
        else:
            self._streams[name] = stream
            self._tasks.create_task(self._read(name, stream))

    async def _read(self, name: str, stream: AsyncStream) -> None:
        try:
            async for piece in stream:
                say_piece(name, piece)
            result = stream.result
            say_done(name, result, await stream.answers() if isinstance(result, ResultDone) else [])
        except LmwireError as error:
            say_failed(name, error)

    async def cancel(self, name: str) -> None:
        self._streams[name].cancel()

    async def close(self) -> None:
        await self._end()
        say("closed")


def main() -> None:
    driver = TasksDriver if "--asyncio" in sys.argv[1:] else ThreadsDriver
    driver(json.loads(os.environ["LMWIRE_WORKER_COMMAND"])).run()


if __name__ == "__main__":
    main()
