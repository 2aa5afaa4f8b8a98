"""The driver of the Python client for `lmwire conformance host`: python conformance_driver.py [--asyncio] [--events].

protocol/lmwire_conformance/HOSTS.md specifies it. It reads instructions from stdin and writes its observations to
stdout, both as JSON Lines. It uses `lmwire.Worker`, or with --asyncio `lmwire.AsyncWorker`. With --events it also
prints each event as the library's user gets it, for the test that compares the clients.
"""

import asyncio
import json
import os
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lmwire import (
    Answer,
    AsyncStream,
    AsyncSupervisor,
    AsyncWorker,
    LmwireError,
    RequestFailed,
    ShutdownTimeouts,
    StartFailed,
    Stream,
    Supervisor,
    TokenDelta,
    ToolCallDelta,
    Worker,
)
from lmwire.responses.values import assemble_tokens, assemble_vectors, speech_samples
from lmwire_protocol import decode_command
from lmwire_protocol.events import Done, EmbedDone, Progress, ResultDone, SpeakDone, TokenizeDone, TranscribeDone

EVENTS = "--events" in sys.argv[1:]
SHUTDOWN_TIMEOUTS = ShutdownTimeouts(quit=1.0, eof=1.0, term=1.0)

_lock = threading.Lock()


def report(saw: str, **members: Any) -> None:
    """Print one observation. `sys.stdout` can lose bytes of a large write if this process is stopped meanwhile."""
    rest = memoryview(json.dumps({"saw": saw, **members}).encode() + b"\n")
    with _lock:
        while rest:
            rest = rest[os.write(1, rest) :]


def report_event(name: str, kind: str, event: Any) -> None:
    """Report an event as the library's user gets it."""
    if EVENTS:
        report("event", name=name, kind=kind, event=msgspec.to_builtins(event))


def report_result(name: str, result: Done, items: Sequence[Any]) -> None:
    """Report the end of a request as the library's user gets it.

    Args:
        name: The request.
        result: Its `done`.
        items: The items of its stream.
    """
    if isinstance(result, EmbedDone):
        vectors = [list(vector) for vector in assemble_vectors(items, result.count)]
        for index, values in enumerate(vectors):
            report("vector", name=name, index=index, values=values)
        report_event(name, "done", {"vectors": vectors, "usage": result.usage})
    elif isinstance(result, TranscribeDone):
        text: str = "".join(segment.text for segment in items)
        report("text", name=name, text=text)
        end = {"language": result.language, "duration_s": result.duration_s, "finish_reason": result.finish_reason}
        report_event(name, "done", {"text": text, "segments": items, **end})
    elif isinstance(result, SpeakDone):
        samples = array("h", b"".join(map(speech_samples, items)))
        report("samples", name=name, values=list(samples))
        end = {"seed": result.seed, "duration_s": result.duration_s, "finish_reason": result.finish_reason}
        report_event(
            name, "done", {"samples": list(samples), "sample_rate": items[0].sample_rate if items else 0, **end}
        )
    elif isinstance(result, TokenizeDone):
        tokens = assemble_tokens(items)
        report_event(name, "done", {"token_ids": tokens.ids, "text": tokens.text, "count": result.count})
    else:
        report_event(name, "done", result)


def progress_reporter(name: str) -> Callable[[Progress], None]:
    """Return a function that reports the progress of a request."""
    return lambda progress: report_event(name, "progress", progress)


def report_delta(name: str, delta: object) -> None:
    """Report a delta of an answer. `report_done` reports tool calls, once they are complete."""
    if isinstance(delta, TokenDelta | ToolCallDelta):  # other commands report their whole result
        report_event(name, str(delta.__struct_config__.tag), delta)
    if isinstance(delta, TokenDelta):
        channel = {"channel": "reasoning"} if delta.reasoning else {}
        logprobs = {"logprobs": msgspec.to_builtins(delta.logprobs)} if delta.logprobs else {}
        report("text", name=name, choice=delta.choice, text=delta.text or delta.reasoning, **channel, **logprobs)


def has_answers(done: Done) -> bool:
    """Return whether a `done` ends a `generate` or `chat`."""
    return isinstance(done, ResultDone)


def report_done(name: str, result: Any, answers: Sequence[Answer]) -> None:
    """Report the success of a request. Only `generate` and `chat` have answers."""
    for choice, answer in enumerate(answers):
        for call in answer.tool_calls:
            report("tool_call", name=name, choice=choice, call=msgspec.to_builtins(call))
    reasons = [answer.finish_reason for answer in answers]
    report(
        "done",
        name=name,
        **({"finish_reason": result.finish_reason} if reasons else {}),
        **({"choices": reasons} if len(reasons) > 1 else {}),
    )


def report_failed(name: str, error: LmwireError) -> None:
    """Report the failure of a request."""
    if isinstance(error, RequestFailed):
        report_event(name, "error", error.event)
        report("failed", name=name, code=error.code, retryable=error.retryable)
    else:  # WorkerUnavailable has no code, because no worker sent it
        report("failed", name=name, code=getattr(error, "code", "worker_lost"))


class ThreadsDriver:
    """Runs the instructions with a thread for each request."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._streams: dict[str, Stream] = {}

    def run(self) -> None:
        """Run the instructions on stdin to its end."""
        for line in sys.stdin:
            instruction = json.loads(line)
            getattr(self, instruction.pop("do"))(**instruction)

    def start(self, timeout: float = 30.0, restart: bool = False) -> None:
        """Start a worker, under a supervisor if it must be restarted."""

        def make() -> Worker:
            return Worker(self._command, start_timeout=timeout, shutdown_timeouts=SHUTDOWN_TIMEOUTS)

        if restart:
            supervisor = Supervisor(lambda _: None, make=make)
            self._worker, self._end, start = supervisor.worker, supervisor.close, supervisor.worker
        else:
            worker = make()
            self._worker, self._end, start = lambda: worker, worker.close, worker.start
        try:
            start()
        except StartFailed:
            report("start_failed")
        else:
            report("started")

    def request(self, name: str, command: dict[str, Any], timeout: float | None = None) -> None:
        """Start a request."""
        try:
            stream = self._worker().stream(
                decode_command(command), on_progress=progress_reporter(name), timeout=timeout
            )
        except LmwireError as error:
            report_failed(name, error)
        else:
            self._streams[name] = stream
            threading.Thread(target=self._read, args=(name, stream)).start()

    def _read(self, name: str, stream: Stream) -> None:
        try:
            for delta in stream:
                report_delta(name, delta)
            result = stream.result
            report_result(name, result, stream.collect())
            report_done(name, result, stream.answers() if has_answers(result) else [])
        except LmwireError as error:
            report_failed(name, error)

    def cancel(self, name: str) -> None:
        """Cancel a request."""
        self._streams[name].cancel()

    def close(self, drain: bool = False) -> None:
        """End the worker."""
        if drain:
            self._worker().quit(drain=True)
        self._end()
        report("closed")


class TasksDriver:
    """Runs the instructions with a task for each request."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._streams: dict[str, AsyncStream] = {}

    def run(self) -> None:
        """Run the instructions on stdin to its end."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            while line := await asyncio.to_thread(sys.stdin.readline):
                instruction = json.loads(line)
                await getattr(self, instruction.pop("do"))(**instruction)

    async def start(self, timeout: float = 30.0, restart: bool = False) -> None:
        """Start a worker, under a supervisor if it must be restarted."""

        def make() -> AsyncWorker:
            return AsyncWorker(self._command, start_timeout=timeout, shutdown_timeouts=SHUTDOWN_TIMEOUTS)

        if restart:
            supervisor = AsyncSupervisor(lambda _: asyncio.sleep(0), make=make)
            self._worker, self._end, start = supervisor.worker, supervisor.close, supervisor.worker
        else:
            worker = make()
            self._worker, self._end, start = lambda: asyncio.sleep(0, worker), worker.close, worker.start
        try:
            await start()
        except StartFailed:
            report("start_failed")
        else:
            report("started")

    async def request(self, name: str, command: dict[str, Any], timeout: float | None = None) -> None:
        """Start a request."""
        try:
            stream = (await self._worker()).stream(
                decode_command(command), on_progress=progress_reporter(name), timeout=timeout
            )
        except LmwireError as error:
            report_failed(name, error)
        else:
            self._streams[name] = stream
            self._tasks.create_task(self._read(name, stream))

    async def _read(self, name: str, stream: AsyncStream) -> None:
        try:
            async for delta in stream:
                report_delta(name, delta)
            result = stream.result
            report_result(name, result, await stream.collect())
            report_done(name, result, await stream.answers() if has_answers(result) else [])
        except LmwireError as error:
            report_failed(name, error)

    async def cancel(self, name: str) -> None:
        """Cancel a request."""
        self._streams[name].cancel()

    async def close(self, drain: bool = False) -> None:
        """End the worker."""
        if drain:
            await (await self._worker()).quit(drain=True)
        await self._end()
        report("closed")


def main() -> None:
    """Run the driver with the worker command in the environment."""
    driver = TasksDriver if "--asyncio" in sys.argv[1:] else ThreadsDriver
    driver(json.loads(os.environ["LMWIRE_WORKER_COMMAND"])).run()


if __name__ == "__main__":
    main()
