"""A worker's process: it has its own group, its pipes are drained until it is gone, and its end takes a bounded time.

Two threads serve it. The pump owns the pipes and waits for all of them at once, except for an output with its own
reader. The reaper waits for the process. POSIX only.
"""

import os
import selectors
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from signal import SIGKILL, Signals
from time import monotonic
from typing import Final, Protocol

from lmwire_protocol import Line, LineSplitter

from .child import Spawn, spawn_process

_LINES: Final = 64
_LINE_BYTES: Final = 1024
_READ_BYTES = 64 * 1024
_FINAL_READS = 16
"""Reads after the process has ended: 1 MiB, the largest capacity of a pipe."""
EXIT_TIMEOUT_AFTER_EOF_S = 5.0


class OutputReader(Protocol):
    """Reads a process's output on another thread than the pump."""

    def start(self, pipe: int, read: Callable[[], float | None], /) -> None:
        """Call `read` from now on, whenever the pipe has data and at the time that the last call returned.

        Args:
            pipe: The descriptor of the pipe.
            read: Returns a time of `monotonic`, `inf` if no call is due without new data, or None at the end.
        """

    def stop(self) -> None:
        """Stop the calls. May be called on any thread, and returns at once, even if the reader is busy."""


class StderrTail:
    """Splits stderr into lines, and keeps the last 64, each cut to 1,024 bytes.

    Args:
        on_line: Called with each line.
    """

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._splitter = LineSplitter(_LINE_BYTES)
        self._lines: deque[str] = deque(maxlen=_LINES)

    @property
    def lines(self) -> list[str]:
        """Return the last lines."""
        return list(self._lines)

    def feed(self, data: bytes) -> None:
        """Take bytes of stderr, cut anywhere."""
        self._add(self._splitter.feed(data))

    def finish(self) -> None:
        """Take the end of stderr: a partial line counts as a line."""
        self._add(self._splitter.finish())

    def _add(self, lines: Iterable[Line]) -> None:
        for line in lines:
            text = line.data.decode(errors="replace")
            self._lines.append(text)
            if self._on_line:
                self._on_line(text)


class Process:
    """A child process whose pipes are drained.

    The callbacks run on the pump's thread, and `on_output` on the reader's. They must not wait for this process.

    Args:
        command: The program, which is searched on PATH, and its arguments.
        on_output: Called with data from stdout. Returns the time of `monotonic` at which it is due again, even without
            new data, or `inf`.
        on_exit: Called once, as the last callback, with the exit code or the signal's negated number.
        on_stderr: Called with each line of stderr.
        reader: Reads stdout instead of the pump while the process is alive.
        spawn: Starts the program.

    Raises:
        OSError: The process cannot be spawned.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        on_output: Callable[[bytes], float],
        on_exit: Callable[[int], None],
        on_stderr: Callable[[str], None] | None = None,
        reader: OutputReader | None = None,
        spawn: Spawn = spawn_process,
    ) -> None:
        self._on_output, self._on_exit = on_output, on_exit
        self._stderr_tail = StderrTail(on_stderr)
        self._reader = reader
        self._child = spawn(command)
        self.pid = self._child.pid
        self._stdin, self._stdout, self._stderr = self._child.stdin, self._child.stdout, self._child.stderr
        self._returncode = 0
        self._wake_reader, self._wake_writer = os.pipe()
        for descriptor in (self._stdin.fileno(), self._stdout.fileno(), self._stderr.fileno(), self._wake_writer):
            os.set_blocking(descriptor, False)

        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._handle_wake)
        if reader is None:
            self._selector.register(self._stdout, selectors.EVENT_READ, self._read_stdout)
        self._selector.register(self._stderr, selectors.EVENT_READ, self._read_stderr)

        self._lock = threading.Lock()  # for the next four, which the callers' threads share with the pump
        self._backlog = bytearray()
        self._stdin_open = True
        self._reaped = False
        self._pipes_open = True
        self._read_lock = threading.Lock()  # so that data is passed on in the order in which it was read
        self._kill_at = inf
        self._output_due_at = inf
        self._reaper = threading.Thread(target=self._reap, name=f"lmwire-reaper-{self.pid}", daemon=True)
        self._pump = threading.Thread(target=self._run, name=f"lmwire-pump-{self.pid}", daemon=True)
        if reader is not None:
            reader.start(self._stdout.fileno(), self._read_for_reader)
        self._reaper.start()
        self._pump.start()

    @property
    def stderr_tail(self) -> list[str]:
        """Return the last 64 lines of stderr, each cut to 1,024 bytes."""
        return self._stderr_tail.lines

    def write(self, data: bytes) -> None:
        """Write to stdin without waiting. Bytes that do not fit into the pipe follow later, while the process lives."""
        with self._lock:
            if not (self._stdin_open and self._pipes_open):
                return
            idle = not self._backlog
            self._backlog += data
            if idle:
                self._flush()
            if self._backlog:
                self._wake()

    def close_stdin(self) -> None:
        """Close stdin once all earlier data is written."""
        with self._lock:
            self._stdin_open = False
            self._wake()

    def signal(self, signal: Signals) -> None:
        """Send a signal to the process group, unless the process has ended."""
        with self._lock:
            if not self._reaped:
                self._child.signal(signal)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the process is gone and `on_exit` has returned. Return whether that is so.

        Args:
            timeout: Longest wait, in seconds. None means no limit.
        """
        self._pump.join(timeout)
        return not self._pump.is_alive()

    def _reap(self) -> None:
        self._returncode = self._child.wait()
        with self._lock:
            self._child.signal(SIGKILL)  # its children must not outlive it
            self._reaped = True
            self._wake()

    def _run(self) -> None:
        try:
            while not self._reaped:
                self._wait_and_handle()
            # The pipes now hold all output of the process. Do not wait for their end: a grandchild outside of the
            # group may keep them open forever.
            if self._reader is not None:
                self._reader.stop()
            for read in (self._read_stdout, self._read_stderr):
                for _ in range(_FINAL_READS):
                    if not read():
                        break
            self._stderr_tail.finish()
        finally:
            self.signal(SIGKILL)  # the process is still alive only if a callback failed
            self._reaper.join()
            self._close_pipes()
            self._on_exit(self._returncode)

    def _wait_and_handle(self) -> None:
        """Wait for the next event of a pipe or timer, and handle it."""
        wake_at = min(self._kill_at, self._output_due_at)
        timeout = None if wake_at == inf else max(0.0, wake_at - monotonic())
        for key, _ in self._selector.select(timeout):
            if key.data() == b"":
                self._selector.unregister(key.fileobj)
        if monotonic() >= self._output_due_at:
            self._read_stdout()
        if monotonic() >= self._kill_at:
            self._kill_at = inf  # one that a driver holds in the kernel may outlive its kill for long
            self.signal(SIGKILL)

    def _read_stdout(self) -> bytes | None:
        """Read and pass on stdout. Return the data, which is empty at the end, or None if nothing was there."""
        with self._read_lock:
            data, self._output_due_at = self._pass_on_stdout()
        return data

    def _read_for_reader(self) -> float | None:
        try:
            with self._read_lock:
                if self._reaped:
                    return None  # the pump reads the rest
                data, due_at = self._pass_on_stdout()
        except BaseException:
            self.signal(SIGKILL)  # as the pump does when a callback fails
            raise
        if data != b"":
            return due_at
        with self._lock:
            self._wake()  # the pump waits for the exit now
        return None

    def _pass_on_stdout(self) -> tuple[bytes | None, float]:
        """Read stdout and pass the data on. Return it, and the time of the next call even without new data."""
        data = self._stdout.read(_READ_BYTES)
        if data == b"":
            # The process is ending, or will write no more.
            self._kill_at = min(self._kill_at, monotonic() + EXIT_TIMEOUT_AFTER_EOF_S)
        return data, self._on_output(data or b"")

    def _read_stderr(self) -> bytes | None:
        if data := self._stderr.read(_READ_BYTES):
            self._stderr_tail.feed(data)
        return data

    def _handle_wake(self) -> None:
        os.read(self._wake_reader, _READ_BYTES)
        self._write_stdin()

    def _write_stdin(self) -> None:
        """Write as much as the pipe takes, and register for the rest. Only the pump closes stdin."""
        with self._lock:
            if self._stdin.closed:
                return
            self._flush()
            watched = self._stdin in self._selector.get_map()
            if self._backlog and not watched:
                self._selector.register(self._stdin, selectors.EVENT_WRITE, self._write_stdin)
            if not self._backlog and watched:
                self._selector.unregister(self._stdin)
            if not self._backlog and not self._stdin_open:
                self._stdin.close()

    def _flush(self) -> None:
        try:
            del self._backlog[: self._stdin.write(self._backlog) or 0]
        except BrokenPipeError:  # the process no longer reads; its exit explains why
            self._backlog.clear()

    def _wake(self) -> None:
        if self._pipes_open:
            with suppress(BlockingIOError):  # the pipe is full, so the pump wakes anyway
                os.write(self._wake_writer, b"\0")

    def _close_pipes(self) -> None:
        with self._lock:
            self._pipes_open = False
            self._selector.close()
            for pipe in (self._stdin, self._stdout, self._stderr):
                pipe.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
