"""One case being played: a run of the driver on one side, the workers that it starts on the other."""

import shutil
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from . import wire
from .case_failure import CaseFailure, Inconclusive, WorkerEnded
from .driver import Driver
from .played_worker import HostRequest, PlayedWorker

_REMOTE_WORKER: Final = Path(__file__).with_name("remote_worker.py")
_TRAIL: Final = 12
_LOOK_S: Final = 0.02


class CaseContext:
    """What a case acts with.

    Args:
        command: the host's driver.
        timeout: seconds that any wait may take.
        pace: times as long as usual that the host is asked to wait, for a slow machine.

    Attributes:
        driver: the host.
        worker: the worker that it started last.
    """

    worker: PlayedWorker

    def __init__(self, command: Sequence[str], timeout: float, pace: float = 1.0) -> None:
        self.pace = pace
        self.trail: deque[str] = deque(maxlen=_TRAIL)
        """The last lines that went to and fro."""
        self.timeout = timeout
        self._folder = tempfile.mkdtemp(prefix="lmwire")
        address = f"{self._folder}/kit"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen()
        self._workers: list[PlayedWorker] = []
        # Isolated and without site-packages: it needs neither, and starts in a third of the time.
        worker_command = [sys.executable, "-I", "-S", str(_REMOTE_WORKER), address]
        try:
            self.driver = Driver(command, worker_command, self.trail.append, timeout)
        except OSError:
            self._remove()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.driver.kill()
        for worker in self._workers:
            worker.disconnect()
        self._remove()
        self.driver.close_pipes()

    def spawn(self, **start: Any) -> PlayedWorker:
        """Has the host start a worker, and returns that."""
        self.driver.instruct(do="start", **start)
        deadline = monotonic() + self.timeout
        while (worker := self.next_worker(_LOOK_S)) is None:
            if self.driver.start_outcome(_LOOK_S) or monotonic() > deadline:
                raise CaseFailure("the host spawns $LMWIRE_WORKER_COMMAND", f"it did not{self.driver.stderr_tail}")
        self.worker = worker
        return worker

    @contextmanager
    def before_the_host_gives_up(self) -> Iterator[None]:
        """Does what must be done before the host's patience is over.

        Raises:
            TooSoon: it was over first.
        """
        try:
            yield
        except CaseFailure as failure:
            if self.driver.start_outcome(self.timeout if isinstance(failure, WorkerEnded) else 0) != "start_failed":
                raise
            raise Inconclusive(failure.expected, failure.seen) from None

    def next_worker(self, seconds: float) -> PlayedWorker | None:
        """The next process that the host, or a worker, starts; None when none comes."""
        self._listener.settimeout(seconds)
        try:
            accepted, _ = self._listener.accept()
        except TimeoutError:
            return None
        accepted.setblocking(True)
        worker = PlayedWorker(Connection(accepted.detach()), self.trail.append, self.timeout)
        self._workers.append(worker)
        return worker

    def start(self) -> PlayedWorker:
        """Has the host start a worker that comes up as it should."""
        worker = self.spawn()
        worker.write(wire.hello_done(worker.expect("hello").id))
        self.driver.expect_start("started")
        return worker

    def request(self, name: str, cmd: str = "generate", *, timeout: float | None = None, **fields: Any) -> HostRequest:
        """Has the host make a request, and waits until it has reached the worker."""
        self.ask(name, cmd, timeout=timeout, **fields)
        return self.worker.expect(cmd)

    def request_chat(self, name: str, **fields: Any) -> HostRequest:
        """The same, of a conversation."""
        return self.request(name, "chat", messages=[{"role": "user", "content": f"the question of {name}"}], **fields)

    def ask(self, name: str, cmd: str = "generate", *, timeout: float | None = None, **fields: Any) -> None:
        """Has the host make a request."""
        if cmd == "generate":
            fields.setdefault("prompt", f"the prompt of {name}")
        patience = {} if timeout is None else {"timeout": timeout}
        self.driver.instruct(do="request", name=name, command={"cmd": cmd, **fields}, **patience)

    def close(self) -> None:
        """Has the host end its worker, which does what it should if it is there, and looks that nothing is left."""
        self.driver.instruct(do="close")
        with suppress(WorkerEnded):
            self.worker.write(wire.quit_done(self.worker.expect("quit").id))
            self.worker.end(0)
        self.expect_closed()

    def expect_closed(self) -> None:
        """Waits for the host to tell that its worker is gone, which must be true."""
        self.driver.expect_closed()
        if not self.worker.ended:
            raise CaseFailure("`closed` after the worker's end", "the worker is still there")

    def finish(self) -> None:
        """Ends the case in the proper way, as far as it has not ended."""
        if not self.driver.closed:
            self.close()
        self.driver.finish()

    def _remove(self) -> None:
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)
