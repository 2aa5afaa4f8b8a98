"""The context in which a case is played: the driver on one side, the workers that it starts on the other."""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from . import wire
from .case_failure import CaseFailure, Inconclusive, WorkerEnded
from .driver import Driver
from .driver_process import DriverProcess
from .played_worker import HostRequest, PlayedWorker

_LOG_LINES: Final = 12
_POLL_S: Final = 0.02
_SHORTEST_STEP_S: Final = 0.5
"""Shortest step of a host's shutdown, as HOSTS.md says."""


class CaseContext:
    """The means of one case.

    Args:
        process: The driver's process.
        timeout: Maximum seconds of any wait.
        patience: Factor by which the host is asked to wait longer than usual, for a slow machine.

    Attributes:
        driver: The host.
        worker: The worker that the host started last.
        log: The last lines of the driver and of its workers.
    """

    worker: PlayedWorker

    def __init__(self, process: DriverProcess, timeout: float, patience: float = 1.0) -> None:
        self.patience = patience
        self.timeout = timeout
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self.driver = Driver(process, self.log.append, timeout)
        self._listener = process.listener
        self._workers: list[PlayedWorker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for worker in self._workers:
            worker.disconnect()
        self._listener.drop_waiting()

    def spawn(self, **start: Any) -> PlayedWorker:
        """Instruct the host to start a worker, and return that worker."""
        self.driver.instruct(do="start", **start)
        deadline = monotonic() + self.timeout
        while (worker := self.next_worker(_POLL_S)) is None:
            if self.driver.start_outcome(_POLL_S) or monotonic() > deadline:
                raise CaseFailure("the host spawns $LMWIRE_WORKER_COMMAND", f"it did not{self.driver.stderr_tail}")
        self.worker = worker
        return worker

    @contextmanager
    def before_the_host_gives_up(self) -> Generator[None]:
        """Run a block that must end before the host gives up waiting for `hello`.

        Raises:
            Inconclusive: The host gave up first.
        """
        try:
            yield
        except CaseFailure as failure:
            if self.driver.start_outcome(self.timeout if isinstance(failure, WorkerEnded) else 0) != "start_failed":
                raise
            raise Inconclusive(failure.expected, failure.seen, *failure.rules) from None

    @contextmanager
    def before_the_request_times_out(self, name: str) -> Generator[None]:
        """Run a block that must end before the host gives up a request.

        Args:
            name: The request.

        Raises:
            Inconclusive: The host gave it up first.
        """
        try:
            yield
        except CaseFailure as failure:
            if not self.driver.has_ended(name, 0):
                raise
            raise Inconclusive(failure.expected, failure.seen, *failure.rules) from None

    @contextmanager
    def before_the_next_step(self) -> Generator[None]:
        """Run a block that must end before the host takes the next step of its shutdown.

        Raises:
            Inconclusive: The block failed, and lasted so long that a correct host may have taken that step.
        """
        started = monotonic()
        try:
            yield
        except CaseFailure as failure:
            if not _SHORTEST_STEP_S <= monotonic() - started < self.timeout:
                raise
            raise Inconclusive(failure.expected, failure.seen, *failure.rules) from None

    def next_worker(self, seconds: float) -> PlayedWorker | None:
        """Return the next process that the host or a worker starts, or None if there is none within some seconds."""
        if not (connection := self._listener.accept(seconds)):
            return None
        worker = PlayedWorker(connection, self.log.append, self.timeout)
        self._workers.append(worker)
        return worker

    def fork(self, worker: PlayedWorker, *, daemon: bool) -> PlayedWorker:
        """Let a worker start a child that holds its pipes open, and return the child.

        Args:
            worker: The worker.
            daemon: The child leaves the worker's process group.

        Raises:
            Inconclusive: the child did not come in time. Without it, a host has nothing to withstand.
        """
        worker.fork(daemon=daemon)
        if (child := self.next_worker(self.timeout)) is None:
            raise Inconclusive("a child of the worker", f"none within {self.timeout:g} s")
        return child

    def start(self) -> PlayedWorker:
        """Instruct the host to start a worker, answer its `hello`, and return the worker."""
        worker = self.spawn()
        worker.write(wire.hello_done(worker.expect("hello").id))
        self.driver.expect_start("started")
        return worker

    def request(self, name: str, cmd: str = "generate", *, timeout: float | None = None, **fields: Any) -> HostRequest:
        """Instruct the host to make a request, and return it when it has reached the worker.

        Args:
            name: The name of the request in this case.
            cmd: The command.
            timeout: Seconds after which the host gives the request up.
            fields: The fields of the command.
        """
        self.ask(name, cmd, timeout=timeout, **fields)
        return self.worker.expect(cmd)

    def request_chat(self, name: str, **fields: Any) -> HostRequest:
        """Instruct the host to send a `chat` of one message, and return it when it has reached the worker."""
        return self.request(name, "chat", messages=[{"role": "user", "content": f"the question of {name}"}], **fields)

    def ask(self, name: str, cmd: str = "generate", *, timeout: float | None = None, **fields: Any) -> None:
        """Instruct the host to make a request, without waiting for it. The arguments are those of `request`."""
        if cmd == "generate":
            fields.setdefault("prompt", f"the prompt of {name}")
        limit = {} if timeout is None else {"timeout": timeout}
        self.driver.instruct(do="request", name=name, command={"cmd": cmd, **fields}, **limit)

    def close(self) -> None:
        """Instruct the host to end its worker, which obeys if it is still there, and check that no process remains."""
        self.driver.instruct(do="close")
        with suppress(WorkerEnded):
            self.worker.write(wire.quit_done(self.worker.expect("quit").id))
            self.worker.end(0)
        self.expect_closed()

    def expect_closed(self) -> None:
        """Wait until the host reports that its worker is gone, and check that this is true."""
        self.driver.expect_closed()
        if not self.worker.ended:
            raise CaseFailure("`closed` after the worker's end", "the worker is still there")

    def finish(self) -> None:
        """End the case properly, if it has not ended itself."""
        if not self.driver.closed:
            self.close()
