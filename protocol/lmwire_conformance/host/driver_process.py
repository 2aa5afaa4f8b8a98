"""A process of the host's driver: its pipes, and its way from start to exit."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final, Self, TypeVar

from .case_failure import CaseFailure
from .reports import ReportedRequest
from .worker_listener import WorkerListener

Case = TypeVar("Case")

_STDERR_BYTES: Final = 2000


class DriverProcess:
    """One run of the driver, in which one case or several are played in turn.

    Args:
        command: Starts the driver.
        timeout: Maximum seconds of any wait.

    Attributes:
        listener: Accepts the workers that the host starts.
        cases: Number of cases that were started in this process.
        requests: The reports on the requests of all these cases, by the name that the driver knows.
        late_failures: Numbers of the cases on which the driver sent an invalid report after they ended.

    Raises:
        OSError: The driver cannot be started.
    """

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self.cases = 0
        self.requests: dict[str, ReportedRequest] = {}
        self.late_failures: set[int] = set()
        self._timeout = timeout
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.listener = WorkerListener()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        try:
            self._process = self._start(command)
        except OSError:
            self.listener.close()
            self._stderr.close()
            raise
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Kill the driver and all that it started in its own process group, and close its pipes."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.listener.close()
        self._reader.join(self._timeout)
        for file in (self._process.stdin, self._process.stdout, self._stderr):
            assert file
            with suppress(BrokenPipeError):
                file.close()

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stop the driver's process group during a block: what happens there is news to it all at once."""
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)

    def write(self, line: str) -> None:
        """Write a line to the driver's stdin. A driver that has exited is noticed later, by its missing report."""
        assert self._process.stdin
        rest = memoryview(line.encode() + b"\n")
        with suppress(BrokenPipeError):
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]

    def read(self, seconds: float) -> bytes | None:
        """Return the driver's next line, empty at the end of its output, or None if none comes within some seconds."""
        with suppress(queue.Empty):
            return self._lines.get(timeout=seconds)
        return None

    def late_cases(self, cases: Sequence[Case]) -> list[Case]:
        """Return those of the cases of this process on which the driver sent an invalid report after they ended."""
        return [cases[number - 1] for number in sorted(self.late_failures)]

    def wait_exit(self) -> None:
        """Close the driver's stdin and wait for its exit.

        Raises:
            CaseFailure: It does not exit, or not with code 0.
        """
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            code = self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            expected = "a driver that exits when its stdin ends"
            raise CaseFailure(expected, f"it runs after {self._timeout:g} s") from None
        if code != 0:
            raise CaseFailure("a driver that exits with code 0", f"code {code}{self.stderr_tail}")

    @property
    def exited_cleanly(self) -> bool:
        """Return whether the driver has exited with code 0, which it may do after the end of a case."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(self._timeout) == 0
        return False

    @property
    def stderr_tail(self) -> str:
        """The end of the driver's stderr, as the end of a sentence."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        tail = self._stderr.read().decode(errors="replace").strip()
        return f"; the end of the driver's stderr:\n{tail}" if tail else ""

    def _start(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=os.environ | {"LMWIRE_WORKER_COMMAND": json.dumps(self.listener.worker_command)},
            start_new_session=True,
        )

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")
