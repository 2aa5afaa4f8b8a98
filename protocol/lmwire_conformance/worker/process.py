"""A worker as a real process with real pipes. All its output is checked as it comes."""

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

Value = TypeVar("Value")

_READ_BYTES = 1 << 16
_KEPT_START_BYTES = 1 << 12
_STDERR_LINES = 20
_SEEN_LINES = 3
_JOIN_SECONDS = 1.0
"""Maximum wait for the end of a killed worker's pipes, which another process may hold open."""


class WorkerProcess:
    """One run of a worker.

    Args:
        command: The program and its arguments.
        seconds: Maximum seconds of any wait.

    Attributes:
        session: The record of both sides' lines, with all checks.

    Raises:
        OSError: The program cannot be started.
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
        self._changed = threading.Condition()
        self._violation: Violation | None = None
        self._lines: deque[bytes] = deque(maxlen=_SEEN_LINES)
        self._stderr_lines: deque[bytes] = deque(maxlen=_STDERR_LINES)
        self._reading = True
        self._closing = False
        self._may_cut = False  # a signal ends the worker in time, read or not, even inside a line
        self._ended = False
        self._woken, self._wake = os.pipe()  # interrupts the reader's wait for output
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_stderr)]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        """Write bytes unchanged. A worker that has exited is not a failure of the write.

        Raises:
            Violation: The worker does not read them.
        """
        with self._changed:
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
        """Close the worker's stdin."""
        with self._changed:
            self.session.note_stdin_closed()
        self._stdin.close()

    def close_stdout(self) -> None:
        """Close the reading end of the worker's stdout."""
        with self._changed:
            self.session.note_end_requested()
            self._closing = True
        self.stop_reading()
        self._threads[0].join()
        self._stdout.close()

    def stop_reading(self) -> None:
        """Stop reading the worker's stdout."""
        with self._changed:
            self._reading = False
            self._changed.notify_all()
        os.write(self._wake, b"\0")

    def start_reading(self) -> None:
        """Continue to read the worker's stdout."""
        with self._changed:
            self._reading = True
            self._changed.notify_all()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker's process group."""
        with self._changed:
            if number != signal.SIGINT:
                self.session.note_end_requested()
                self._may_cut = True
        _signal_group(self._process.pid, number)

    def wait(self, find: Callable[[], Value | None], rules: tuple[str, ...], expected: str) -> Value:
        """Wait until a function returns a value other than None, and return that value.

        Args:
            find: The function. The session does not change during a call.
            rules: The rules that are broken if the wait fails.
            expected: A line or sentence that describes the value.

        Raises:
            Violation: The time has passed, the output has ended, or the worker broke a rule.
        """
        deadline = time.monotonic() + self._seconds
        with self._changed:
            while True:
                self._check()
                if (found := find()) is not None:
                    return found
                if self._ended:
                    raise Violation(rules, expected, f"the output ended; {self.last_output()}")
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise Violation(rules, expected, f"none within {self._seconds} s; {self.last_output()}")

    def wait_exit(self, seconds: float | None) -> int:
        """Wait for the worker's exit, check that it has answered everything, and return its exit code.

        Args:
            seconds: Maximum seconds of this wait, or None for the usual maximum.

        Raises:
            Violation: It does not exit, it broke a rule, or it has left something unanswered.
        """
        seconds = self._seconds if seconds is None else seconds
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            with self._changed:
                self._check()
                raise Violation((), f"it exits within {seconds} s", f"it runs; {self.last_output()}") from None
        if self._reading:
            for thread in self._threads:
                thread.join(self._seconds)
            with self._changed:
                self._check()
                if not self._ended:
                    raise Violation((), "its output ends with it", "something else holds its output open")
                self.session.check_end(code)
        return code

    def kill(self) -> None:
        """Kill the worker and its process group, in any state, and close the pipes."""
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
        """Return the worker's last lines on stdout and stderr, as the end of a sentence."""
        lines = b" ".join(self._lines).decode("utf-8", "backslashreplace") or "none"
        stderr = b" ".join(self._stderr_lines).decode("utf-8", "backslashreplace") or "nothing"
        return f"last lines: {lines}; on stderr: {stderr}"

    def _read(self) -> None:
        rest = b""
        while data := self._read_output():
            *whole, rest = (rest + data).split(b"\n")
            with self._changed:
                for line in whole:
                    self._check_line(line)
                if len(rest) >= limits.LINE_OUT_BYTES:
                    self._fail(Violation(("F-12",), f"a line shorter than {limits.LINE_OUT_BYTES} bytes", rest))
                    rest = rest[:_KEPT_START_BYTES]  # the worker may never end it
                self._changed.notify_all()
        with self._changed:
            if rest and not self._may_cut:
                self._fail(Violation(("F-11",), "a newline at the end of the last line", rest))
            self._ended = True
            self._changed.notify_all()

    def _read_output(self) -> bytes:
        """Return the next output as soon as reading is allowed, or empty bytes at its end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._reading or self._closing)
            if self._closing:
                return b""
            ready, _, _ = select.select([self._stdout, self._woken], [], [])
            if self._woken not in ready:
                return os.read(self._stdout.fileno(), _READ_BYTES)
            os.read(self._woken, 1)

    def _check_line(self, line: bytes) -> None:
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
            self._stderr_lines.extend(lines)
            rest = rest[-_READ_BYTES:]


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # what macOS says of a group that has ended
        os.killpg(group, number)
