"""A worker as a real process over real pipes, and everything that it writes, checked as it comes."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from lmwire_protocol import limits

from ..violation import Violation, kit_defect
from .session import CheckedSession

Found = TypeVar("Found")

_READ_BYTES = 1 << 16
_KEPT_START_BYTES = 1 << 12
_STDERR_LINES = 20
_SEEN_LINES = 3
_JOIN_SECONDS = 1.0
"""How long the pipes of a killed worker are waited for; something else may hold them open."""


class WorkerProcess:
    """One run of a worker.

    Args:
        command: the program and its arguments.
        seconds: how long any wait may take.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._seconds = seconds
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        self.session = CheckedSession()
        self._news = threading.Condition()
        self._violation: Violation | None = None
        self._lines: deque[bytes] = deque(maxlen=_SEEN_LINES)
        self._said: deque[bytes] = deque(maxlen=_STDERR_LINES)
        self._reading = True
        self._closing = False
        self._ended = False
        self._woken, self._wake = os.pipe()  # interrupts the reader's wait for output
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_stderr)]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        """Writes bytes as they are. Nobody being there to read them is no failure of the write.

        Raises:
            Violation: the worker does not take them.
        """
        with self._news:
            self.session.note_written(data)
        view, deadline = memoryview(data), time.monotonic() + self._seconds
        with contextlib.suppress(BrokenPipeError):
            while view:
                if not select.select([], [self._stdin], [], max(0.0, deadline - time.monotonic()))[1]:
                    raise Violation(
                        ("W-1",), f"the worker reads commands, within {self._seconds} s", "its stdin is full"
                    )
                with contextlib.suppress(BlockingIOError):
                    view = view[os.write(self._stdin.fileno(), view) :]

    def close_stdin(self) -> None:
        """Ends its input."""
        with self._news:
            self.session.note_stdin_closed()
        self._stdin.close()

    def close_stdout(self) -> None:
        """Lets nobody read its output any more."""
        with self._news:
            self.session.note_end_requested()
            self._closing = True
        self.stop_reading()
        self._threads[0].join()
        self._stdout.close()

    def stop_reading(self) -> None:
        """Leaves its output unread."""
        with self._news:
            self._reading = False
            self._news.notify_all()
        os.write(self._wake, b"\0")

    def start_reading(self) -> None:
        """Reads its output again."""
        with self._news:
            self._reading = True
            self._news.notify_all()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its process group."""
        with self._news:
            if number != signal.SIGINT:
                self.session.note_end_requested()
        _signal_group(self._process.pid, number)

    def wait(self, find: Callable[[], Found | None], rules: tuple[str, ...], expected: str) -> Found:
        """Waits until `find`, called with the session at rest, returns something.

        Raises:
            Violation: the time is over, the output has ended, or the worker broke a rule.
        """
        deadline = time.monotonic() + self._seconds
        with self._news:
            while True:
                self._check()
                if (found := find()) is not None:
                    return found
                if self._ended:
                    raise Violation(rules, expected, f"the output ended; {self.last_output()}")
                if not self._news.wait(max(0.0, deadline - time.monotonic())):
                    raise Violation(rules, expected, f"nothing of it within {self._seconds} s; {self.last_output()}")

    def wait_exit(self, seconds: float | None) -> int:
        """Waits for its end, for `seconds` instead of the usual time, and holds the whole run to what it owes.

        Raises:
            Violation: it does not end, it broke a rule, or it owes something.
        """
        seconds = self._seconds if seconds is None else seconds
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            with self._news:
                self._check()
                raise Violation((), f"it exits within {seconds} s", f"it runs; {self.last_output()}") from None
        if self._reading:
            for thread in self._threads:
                thread.join(self._seconds)
            with self._news:
                self._check()
                if not self._ended:
                    raise Violation((), "its output ends with it", "something else holds its output open")
                self.session.check_end(code)
        return code

    def kill(self) -> None:
        """Ends it and all that it has started, in whatever state."""
        _signal_group(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.start_reading()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):
            for pipe in (self._stdin, self._stdout, self._stderr):
                pipe.close()
            os.close(self._woken)
            os.close(self._wake)

    def _check(self) -> None:
        if self._violation:
            raise self._violation

    def last_output(self) -> str:
        lines = b" ".join(self._lines).decode("utf-8", "backslashreplace") or "none"
        said = b" ".join(self._said).decode("utf-8", "backslashreplace") or "nothing"
        return f"last lines: {lines}; on stderr: {said}"

    def _read(self) -> None:
        rest = b""
        while data := self._read_on():
            *whole, rest = (rest + data).split(b"\n")
            with self._news:
                for line in whole:
                    self._take(line)
                if len(rest) >= limits.LINE_OUT_BYTES:
                    self._fail(Violation(("F-12",), f"a line shorter than {limits.LINE_OUT_BYTES} bytes", rest))
                    rest = rest[:_KEPT_START_BYTES]  # the worker may never end it
                self._news.notify_all()
        with self._news:
            if rest:
                self._fail(Violation(("F-11",), "a newline at the end of the last line", rest))
            self._ended = True
            self._news.notify_all()

    def _read_on(self) -> bytes:
        """The next output, once it may be read; empty at its end."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._reading or self._closing)
            if self._closing:
                return b""
            ready, _, _ = select.select([self._stdout, self._woken], [], [])
            if self._woken not in ready:
                return os.read(self._stdout.fileno(), _READ_BYTES)
            os.read(self._woken, 1)

    def _take(self, line: bytes) -> None:
        self._lines.append(line)
        if self._violation is None:
            try:
                self.session.check_line(line)
            except Violation as violation:
                self._fail(violation)
            except Exception as error:
                self._fail(kit_defect(error))

    def _fail(self, violation: Violation) -> None:
        self._violation = self._violation or violation

    def _read_stderr(self) -> None:
        rest = b""
        while data := os.read(self._stderr.fileno(), _READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            self._said.extend(lines)
            rest = rest[-_READ_BYTES:]


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # what macOS says of a group that has ended
        os.killpg(group, number)
