"""Workers on threads of the test's process, for hosts that may start one: the real session, without a new interpreter.

A host's `spawn` is `on_thread`, which takes the commands that `fake` and `mock` return. Socket pairs stand for the
pipes: their shutdown ends a read at the other end, as the death of a process does.
"""

import json
import os
import select
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from signal import SIGKILL, Signals
from time import monotonic
from typing import IO, Any, NoReturn

from lmwire import DEFAULT_COMMAND, AsyncWorker
from lmwire.transport.child import Child, spawn_process
from lmwire_protocol import Line, LineSplitter, RequestError, decode_object, limits
from lmwire_worker.__main__ import read_options, read_settings
from lmwire_worker.engine.interface import ModelLoader
from lmwire_worker.mock.plan import plan
from lmwire_worker.process.stderr_log import Log
from lmwire_worker.process.stdio import Pipes
from lmwire_worker.scheduling.scheduler import Scheduler
from lmwire_worker.session.output_queue import OutputQueue
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.v1 import Session
from support.process import fake_worker, stepped_worker
from support.process.fake_worker import Descriptors, fake, write
from support.process.mock_host import Event, WorkerOutput, mock
from support.process.worker_process import SECONDS, WorkerProcess
from support.runners.stepped_engine import Bystander

IN_A_ROW = [sys.executable, stepped_worker.__file__]
_PIDS = count(10_000_000)
"""Numbers that no process has, since the system's end at 4,194,304."""
_EXIT_PROTOCOL = 76
NEEDS_A_PROCESS = {
    *("crash-start", "crash-mid-line", "crash-mid-stream", "crash-after-terminal", "newer-version", "stderr-flood"),
    *("stall", "grandchild", "ignore-eof", "ignore-sigterm"),
}
"""Faults that end or change a whole process, or never end."""


_RUNNING: dict[int, "WorkerThread"] = {}
"""Workers that have not ended, by the numbers that stand for their processes."""


class Died(BaseException):
    """The end of a worker by a signal."""

    def __init__(self, number: Signals) -> None:
        self.number = number


def die(number: Signals) -> NoReturn:
    """End the worker on this thread by a signal."""
    raise Died(number)


class WorkerThread:
    """A worker on a thread, as the `Child` of a host or the process of a `WorkerProcess`. Any signal kills it.

    Args:
        run: Runs the worker on the given descriptors, and returns its exit code.
    """

    def __init__(self, run: Callable[[Descriptors], int]) -> None:
        self.pid = next(_PIDS)
        pairs = [socket.socketpair() for _ in range(3)]
        self._ours = [ours for ours, _ in pairs]
        self.stdin, self.stdout, self.stderr = (
            _file(theirs, mode) for (_, theirs), mode in zip(pairs, ("wb", "rb", "rb"), strict=True)
        )
        self._lock = threading.Lock()
        self._signal: Signals | None = None
        self._returncode = 0
        _RUNNING[self.pid] = self
        self._thread = threading.Thread(target=self._run, args=(run,), name=f"worker-{self.pid}", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> int:
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the worker has not ended"
        return self._returncode

    def kill(self) -> None:
        self.signal(SIGKILL)

    def signal(self, signal: Signals) -> None:
        with self._lock:
            self._signal = self._signal or signal
            for ours in reversed(self._ours):  # the input last, since its end makes a mock look at the others
                if ours.fileno() >= 0:
                    ours.shutdown(socket.SHUT_RDWR)

    def _run(self, run: Callable[[Descriptors], int]) -> None:
        code = 1
        try:
            code = run(Descriptors(*(ours.fileno() for ours in self._ours)))
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else 1
        except Died as death:
            code = -death.number
        except OSError:
            pass  # the host has closed its ends, or the worker was killed
        finally:
            del _RUNNING[self.pid]
            with self._lock:
                self._returncode = -self._signal if self._signal else code
                for ours in self._ours:
                    ours.close()


def kill(pid: int) -> None:
    """Kill a worker, be it a process or a thread. Raises ProcessLookupError if it has ended."""
    if worker := _RUNNING.get(pid):
        worker.kill()
    else:
        os.kill(pid, SIGKILL)


def signal_thread(pid: int, number: Signals) -> None:
    """Send a signal to a worker on a thread, as `os.killpg` does to a process, unless it has ended."""
    if worker := _RUNNING.get(pid):
        worker.signal(number)


def spawn(command: Sequence[str]) -> Child:
    """Start a worker on a thread if it may run on one, else as a process."""
    return on_thread(command) if _may_be_a_thread(command) else spawn_process(command)


def worker_of_a_pool(command: Sequence[str], *, watch_host: bool = False, **keywords: Any) -> AsyncWorker:
    """Stand for `AsyncWorker` in a pool, whose workers then run on threads if they may.

    Args:
        command: The command line.
        watch_host: Whether the worker ends with this process, as a thread does by itself.
        keywords: The other keywords.
    """
    watch_host = watch_host and not _may_be_a_thread(command)
    return AsyncWorker(command, watch_host=watch_host, spawn=spawn, **keywords)


def _may_be_a_thread(command: Sequence[str]) -> bool:
    """Return whether the command is that of a worker that needs no process.

    A mock needs one for some faults. A real worker needs one for a limit of its memory, since all models of a process
    share that, and for another hub than the usual one, whose address a process reads only once.
    """
    mocks = _options_of_mocks(command)
    if mocks is None:
        return _is_real(command) and "--memory-limit" not in command and "HF_ENDPOINT" not in os.environ
    return not any(word.partition(":")[0] in NEEDS_A_PROCESS for options in mocks for word in options)


def _is_real(command: Sequence[str]) -> bool:
    return tuple(command[: len(DEFAULT_COMMAND)]) == DEFAULT_COMMAND and "--mock" not in command


def on_thread(command: Sequence[str]) -> WorkerThread:
    """Run a worker on a thread.

    Args:
        command: What `fake`, `mock` or `in_a_row` returned, or a real worker's.
    """
    if _is_real(command):
        return WorkerThread(partial(run_real, arguments=command[len(DEFAULT_COMMAND) :]))
    for start, run in ((fake("Good")[:-1], run_fake), (mock(), run_mock), (IN_A_ROW, run_in_a_row)):
        if list(command[: len(start)]) == start:
            return WorkerThread(partial(run, arguments=command[len(start) :]))
    raise AssertionError(f"{command} is not a worker of this project")


def _options_of_mocks(command: Sequence[str]) -> list[list[str]] | None:
    """Return the options of each mock that a command may run; None if it runs something else."""
    if list(command[: len(mock())]) == mock():
        return [[*command[len(mock()) :]]]
    if list(command[: len(IN_A_ROW)]) == IN_A_ROW:
        return [shlex.split(plan) for plan in command[len(IN_A_ROW) + 1 :]]
    return None


def start_on_thread(command: Sequence[str], **_: object) -> WorkerThread:
    """Start a worker for a `WorkerProcess`. Ignores the keywords of a process."""
    return on_thread(command)


class MockOnThread(WorkerProcess):
    """A mock worker on a thread, for tests that speak the protocol line by line.

    Args:
        options: The command line of `lmwire mock`, without faults of the process.
    """

    def __init__(self, *options: str) -> None:
        super().__init__(command=mock(*options), start=start_on_thread)


class RealOnThread(WorkerProcess):
    """A worker with real models on a thread, for tests of what its process does not change.

    Args:
        options: The command line of `lmwire worker`.
    """

    def __init__(self, *options: str) -> None:
        super().__init__(command=[*DEFAULT_COMMAND, *options], start=start_on_thread)


def run_on_thread(command: Sequence[str], *requests: Event) -> WorkerOutput:
    """Run a mock to its end as `run_worker` does, on a thread.

    Args:
        command: What `mock` or `faulty` returned.
        requests: The worker's input.
    """
    worker = on_thread(command)
    with ThreadPoolExecutor(2) as pool, worker.stdin, worker.stdout, worker.stderr:
        outputs = [pool.submit(_read_all, pipe) for pipe in (worker.stdout, worker.stderr)]
        with suppress(BrokenPipeError):  # it may end before it has read everything
            worker.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        worker.stdin.close()
        stdout, stderr = (output.result() for output in outputs)
    return WorkerOutput(stdout, stderr, worker.wait(SECONDS))


def _read_all(pipe: IO[bytes]) -> bytes:
    return b"".join(iter(lambda: pipe.read(1 << 16), b""))


def run_fake(descriptors: Descriptors, arguments: Sequence[str]) -> int:
    """Run a fake worker, and return its exit code.

    Args:
        descriptors: The worker's ends of its pipes.
        arguments: The class and its arguments.
    """
    name, *others = arguments
    getattr(fake_worker, name)(*others, descriptors=descriptors, die=die).run()
    return 0


def run_in_a_row(descriptors: Descriptors, arguments: Sequence[str]) -> int:
    """Run the next mock worker of a row, and return its exit code."""

    def wait_at(gate: Path) -> None:
        opened = threading.Event()
        threading.Thread(target=lambda: (stepped_worker.wait_at(gate), opened.set()), daemon=True).start()
        while not opened.wait(0.02):
            if _is_shut(descriptors.stdout):
                raise Died(SIGKILL)

    return run_mock(descriptors, stepped_worker.next_plan(arguments, wait_at))


def run_mock(descriptors: Descriptors, arguments: Sequence[str]) -> int:
    """Run a mock worker, and return its exit code. It knows no signals and no bridge sessions.

    Args:
        descriptors: The worker's ends of its pipes.
        arguments: The command line of `lmwire mock`, without faults of the process.
    """
    asked = {option.partition(":")[0] for option in arguments}
    assert asked.isdisjoint(NEEDS_A_PROCESS), "this fault would meet the test's process"
    mocked = plan(list(arguments))
    return run_engine(descriptors, mocked.engine, mocked.around)


def run_real(descriptors: Descriptors, arguments: Sequence[str]) -> int:
    """Run a worker with real models, and return its exit code. It knows no signals and no bridge sessions.

    Args:
        descriptors: The worker's ends of its pipes.
        arguments: The command line of `lmwire worker`.
    """
    from lmwire_worker.loading.model_loader import MlxModelLoader  # it imports MLX

    settings = read_settings(read_options([*arguments]), LogTo(descriptors.stderr))
    loader = MlxModelLoader(*settings)
    loader.prepare()
    return run_engine(descriptors, loader)


def run_engine(
    descriptors: Descriptors, engine: ModelLoader, around: Callable[[Pipes], Pipes] = lambda pipes: pipes
) -> int:
    """Run a worker with the models of this loader, and return its exit code.

    Args:
        descriptors: The worker's ends of its pipes.
        engine: Opens the models.
        around: Puts faults between the worker and its pipes.
    """
    pipes = around(Pipes(descriptors.stdin, descriptors.stdout, -1))
    output = OutputQueue(pipes.write)
    registry = RequestRegistry(output)
    log = LogTo(descriptors.stderr)
    scheduler = Scheduler(registry, output, engine, log)
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        registry.drain()
        registry.cancel_where(lambda request: True)

    deadlines, refuse = Deadlines(registry), partial(end, _EXIT_PROTOCOL)
    session = Session(registry, output, scheduler, deadlines, engine.names, engine.features, log, refuse)

    def serve(line: Line) -> None:
        try:
            fields = decode_object(line)
        except RequestError as error:
            session.refuse(line, error)
        else:
            session.serve(fields, len(line.data))
        output.wait_for_reply_capacity()

    def read() -> None:
        try:
            lines = LineSplitter(limits.LINE_IN_BYTES)
            while data := pipes.read(1 << 16):
                for line in lines.feed(data):
                    serve(line)
            for line in lines.finish():
                serve(line)
        finally:
            registry.drain()
            if _is_shut(descriptors.stdout):
                end(0)

    reader = threading.Thread(target=read, name="worker-reader", daemon=True)
    writer = threading.Thread(
        target=output.run, args=(registry.wake, lambda: end(0)), name="worker-writer", daemon=True
    )
    reader.start()
    writer.start()
    scheduler.run()
    registry.close()
    writer.join()
    with socket.socket(fileno=os.dup(descriptors.stdin)) as stdin:
        stdin.shutdown(socket.SHUT_RD)  # after a quit, the reader still waits for the next line
    reader.join()
    return codes[0] if codes else 0


class Deadlines(Bystander):
    """A lifecycle monitor that knows only the requests' deadlines.

    Args:
        registry: The requests in flight.
    """

    def __init__(self, registry: RequestRegistry) -> None:
        self._registry = registry

    def deadlines_changed(self) -> None:
        next_at = self._registry.cancel_expired()
        if next_at < inf:
            timer = threading.Timer(min(max(0.0, next_at - monotonic()), threading.TIMEOUT_MAX), self.deadlines_changed)
            timer.daemon = True
            timer.start()


class LogTo(Log):
    """A log that writes at once.

    Args:
        descriptor: The descriptor to write to.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, text: str) -> None:
        with suppress(OSError):
            write(self._descriptor, f"lmwire: {text}\n".encode())


def _file(end: socket.socket, mode: str) -> IO[bytes]:
    return open(end.detach(), mode, buffering=0)


def _is_shut(descriptor: int) -> bool:
    """Return whether nothing can be written any more, because the worker was killed."""
    poller = select.poll()
    poller.register(descriptor, 0)
    return bool(poller.poll(0))
