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

from . import lines
from .driver import Driver
from .failure import Failure, TooSoon, WorkerEnded
from .worker import Request, Worker

_PUPPET: Final = Path(__file__).with_name("puppet.py")
_TRAIL: Final = 12
_LOOK_S: Final = 0.02


class Play:
    """What a case acts with.

    Args:
        command: the host's driver.
        timeout: seconds that any wait may take.
        pace: times as long as usual that the host is asked to wait, for a slow machine.

    Attributes:
        driver: the host.
        worker: the worker that it started last.
    """

    worker: Worker

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
        self._workers: list[Worker] = []
        # Isolated and without site-packages: it needs neither, and starts in a third of the time.
        puppet = [sys.executable, "-I", "-S", str(_PUPPET), address]
        try:
            self.driver = Driver(command, puppet, self.trail.append, timeout)
        except OSError:
            self._remove()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.driver.kill()
        for worker in self._workers:
            worker.hang_up()
        self._remove()
        self.driver.discard()

    def spawn(self, **start: Any) -> Worker:
        """Has the host start a worker, and returns that."""
        self.driver.do(do="start", **start)
        deadline = monotonic() + self.timeout
        while (worker := self.next_worker(_LOOK_S)) is None:
            if self.driver.listen(_LOOK_S) or monotonic() > deadline:
                raise Failure("the host spawns $LMWIRE_WORKER_COMMAND", f"it did not{self.driver.last_words}")
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
        except Failure as failure:
            if self.driver.listen(self.timeout if isinstance(failure, WorkerEnded) else 0) != "start_failed":
                raise
            raise TooSoon(failure.expected, failure.seen) from None

    def next_worker(self, seconds: float) -> Worker | None:
        """The next process that the host, or a worker, starts; None when none comes."""
        self._listener.settimeout(seconds)
        try:
            accepted, _ = self._listener.accept()
        except TimeoutError:
            return None
        accepted.setblocking(True)
        worker = Worker(Connection(accepted.detach()), self.trail.append, self.timeout)
        self._workers.append(worker)
        return worker

    def start(self) -> Worker:
        """Has the host start a worker that comes up as it should."""
        worker = self.spawn()
        worker.say(lines.greeting(worker.expect("hello").id))
        self.driver.expect_start("started")
        return worker

    def request(self, name: str, cmd: str = "generate", *, timeout: float | None = None, **fields: Any) -> Request:
        """Has the host make a request, and waits until it has reached the worker."""
        self.ask(name, cmd, timeout=timeout, **fields)
        return self.worker.expect(cmd)

    def request_chat(self, name: str, **fields: Any) -> Request:
        """The same, of a conversation."""
        return self.request(name, "chat", messages=[{"role": "user", "content": f"the question of {name}"}], **fields)

    def ask(self, name: str, cmd: str = "generate", *, timeout: float | None = None, **fields: Any) -> None:
        """Has the host make a request."""
        if cmd == "generate":
            fields.setdefault("prompt", f"the prompt of {name}")
        patience = {} if timeout is None else {"timeout": timeout}
        self.driver.do(do="request", name=name, command={"cmd": cmd, **fields}, **patience)

    def close(self) -> None:
        """Has the host end its worker, which does what it should if it is there, and looks that nothing is left."""
        self.driver.do(do="close")
        with suppress(WorkerEnded):
            self.worker.say(lines.bare(self.worker.expect("quit").id))
            self.worker.end(0)
        self.expect_closed()

    def expect_closed(self) -> None:
        """Waits for the host to tell that its worker is gone, which must be true."""
        self.driver.expect_closed()
        if not self.worker.ended:
            raise Failure("`closed` after the worker's end", "the worker is still there")

    def finish(self) -> None:
        """Ends the case in the proper way, as far as it has not ended."""
        if not self.driver.closed:
            self.close()
        self.driver.finish()

    def _remove(self) -> None:
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)
