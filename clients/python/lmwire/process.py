"""A worker's process: a group of its own, three pipes that are drained until it is gone, and a bounded end.

Two threads serve it. The pump owns the pipes and waits for all of them at once, but for an output that has a reader of
its own; the reaper waits for the process. POSIX only.
"""

import os
import selectors
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from signal import SIGKILL, Signals
from time import monotonic
from typing import Protocol

from lmwire_protocol import Line, LineSplitter

from .children import child_environment

_READ_BYTES = 64 * 1024
_LEFTOVER_READS = 16
"""Reads after the end: 1 MiB, the most that a pipe holds."""
_EXIT_AFTER_EOF_S = 5.0
_STDERR_LINES = 64
_STDERR_LINE_BYTES = 1024


class Reader(Protocol):
    """Reads a process' output in another thread than the pump's."""

    def start(self, pipe: int, read: Callable[[], float | None], /) -> None:
        """Calls `read` from now on when there is something in `pipe`, and at the time of `monotonic` that it returned.

        It returns `inf` when nothing is kept, and None when there is nothing more to read.
        """

    def stop(self) -> None:
        """Calls it no more. From any thread, at once, whether or not the reader has the time."""


class Process:
    """Spawns `command` and drains its pipes.

    Args:
        command: the program, which is looked for on PATH, and its arguments.
        on_output: called with what came from stdout; returns at what time of `monotonic` it is to be called again, then
            with nothing if nothing has come: `inf` for never.
        on_exit: called once, last, with the exit code or minus the signal's number. All that the process wrote has
            been handed over by then.
        on_stderr: called with each line of stderr.
        reader: reads stdout in place of the pump, as long as the process lives.

    The callbacks run on the pump's thread, and `on_output` on the reader's, so they must not wait for this process.

    Raises:
        OSError: it cannot be spawned.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        on_output: Callable[[bytes], float],
        on_exit: Callable[[int], None],
        on_stderr: Callable[[str], None] | None = None,
        reader: Reader | None = None,
    ) -> None:
        self._on_output, self._on_exit, self._on_stderr = on_output, on_exit, on_stderr
        self._reader = reader
        # A session of its own: Ctrl-C in the host's terminal reaches the host alone, and signals to the group reach
        # what the command starts (a shell's or container client's children) and nobody else.
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=child_environment(),
        )
        self.pid = self._popen.pid
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._stdin, self._stdout, self._stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        self._wake_reader, self._wake_writer = os.pipe()
        for descriptor in (self._stdin.fileno(), self._stdout.fileno(), self._stderr.fileno(), self._wake_writer):
            os.set_blocking(descriptor, False)

        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._read_wake)
        if reader is None:
            self._selector.register(self._stdout, selectors.EVENT_READ, self._read_stdout)
        self._selector.register(self._stderr, selectors.EVENT_READ, self._read_stderr)

        self._lock = threading.Lock()  # for what the callers' threads share with the pump: the next four
        self._backlog = bytearray()
        self._stdin_wanted = True
        self._reaped = False
        self._pipes_open = True
        self._reading = threading.Lock()  # what is read is handed over in its order
        self._stderr_splitter = LineSplitter(_STDERR_LINE_BYTES)
        self._stderr_tail: deque[str] = deque(maxlen=_STDERR_LINES)
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
        """The last 64 lines of stderr, the first 1,024 bytes of each."""
        return list(self._stderr_tail)

    def write(self, data: bytes) -> None:
        """Sends `data` without ever waiting: what the pipe does not take now is kept. Lost when the process is gone."""
        with self._lock:
            if not (self._stdin_wanted and self._pipes_open):
                return
            idle = not self._backlog
            self._backlog += data
            if idle:
                self._flush()
            if self._backlog:
                self._wake()

    def close_stdin(self) -> None:
        """Closes stdin when everything written before has been taken."""
        with self._lock:
            self._stdin_wanted = False
            self._wake()

    def signal(self, signal: Signals) -> None:
        """Sends a signal to the whole group, unless the process has ended."""
        with self._lock:
            if not self._reaped:
                self._signal_group(signal)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits, at most `timeout` seconds, until the process is gone and `on_exit` has returned."""
        self._pump.join(timeout)
        return not self._pump.is_alive()

    def _reap(self) -> None:
        self._popen.wait()
        with self._lock:
            # What the process started and left behind must not outlive it. The group's number is still its own here:
            # the system hands numbers out in turn, and this one has been free for microseconds.
            self._signal_group(SIGKILL)
            self._reaped = True
            self._wake()

    def _signal_group(self, signal: Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # the second is macOS' word for a group of zombies
            os.killpg(self.pid, signal)

    def _run(self) -> None:
        try:
            while not self._reaped:
                self._turn()
            # All that the process wrote is in the pipes by now. Their end is not waited for: a grandchild that left
            # the group may hold them open for ever.
            if self._reader is not None:
                self._reader.stop()
            for read in (self._read_stdout, self._read_stderr):
                for _ in range(_LEFTOVER_READS):
                    if not read():
                        break
            self._take_stderr(self._stderr_splitter.finish())
        finally:
            self.signal(SIGKILL)  # only when a callback has failed is there something left to end
            self._reaper.join()
            self._close_pipes()
            self._on_exit(self._popen.returncode)

    def _turn(self) -> None:
        """Waits until something happens, and deals with it."""
        wake_at = min(self._kill_at, self._output_due_at)
        patience = None if wake_at == inf else max(0.0, wake_at - monotonic())
        for key, _ in self._selector.select(patience):
            if key.data() == b"":
                self._selector.unregister(key.fileobj)
        if monotonic() >= self._output_due_at:
            self._read_stdout()
        if monotonic() >= self._kill_at:
            self.signal(SIGKILL)

    def _read_stdout(self) -> bytes | None:
        """What came: nothing at the end, None when there is nothing now."""
        with self._reading:
            data, self._output_due_at = self._take_stdout()
        return data

    def _read_for_reader(self) -> float | None:
        try:
            with self._reading:
                if self._reaped:
                    return None  # the pump reads what is left
                data, due_at = self._take_stdout()
        except BaseException:
            self.signal(SIGKILL)  # as when one of the pump's callbacks fails
            raise
        if data != b"":
            return due_at
        with self._lock:
            self._wake()  # the pump counts the seconds now
        return None

    def _take_stdout(self) -> tuple[bytes | None, float]:
        """Hands on what there is to read. Returns it, and when to do so again though nothing may have come."""
        data = self._stdout.read(_READ_BYTES)
        if data == b"":
            # The process is ending, or nothing will be heard from it again.
            self._kill_at = min(self._kill_at, monotonic() + _EXIT_AFTER_EOF_S)
        return data, self._on_output(data or b"")

    def _read_stderr(self) -> bytes | None:
        if data := self._stderr.read(_READ_BYTES):
            self._take_stderr(self._stderr_splitter.feed(data))
        return data

    def _take_stderr(self, lines: Iterable[Line]) -> None:
        for line in lines:
            text = line.data.decode(errors="replace")
            self._stderr_tail.append(text)
            if self._on_stderr:
                self._on_stderr(text)

    def _read_wake(self) -> None:
        os.read(self._wake_reader, _READ_BYTES)
        self._serve_stdin()

    def _serve_stdin(self) -> None:
        """Writes what the pipe takes, and asks to be called again for the rest. Only the pump closes stdin."""
        with self._lock:
            if self._stdin.closed:
                return
            self._flush()
            watched = self._stdin in self._selector.get_map()
            if self._backlog and not watched:
                self._selector.register(self._stdin, selectors.EVENT_WRITE, self._serve_stdin)
            if not self._backlog and watched:
                self._selector.unregister(self._stdin)
            if not self._backlog and not self._stdin_wanted:
                self._stdin.close()

    def _flush(self) -> None:
        try:
            del self._backlog[: self._stdin.write(self._backlog) or 0]
        except BrokenPipeError:  # nobody reads any more; the process' end tells the rest
            self._backlog.clear()

    def _wake(self) -> None:
        if self._pipes_open:
            with suppress(BlockingIOError):  # full: the pump will wake anyway
                os.write(self._wake_writer, b"\0")

    def _close_pipes(self) -> None:
        with self._lock:
            self._pipes_open = False
            self._selector.close()
            for pipe in (self._stdin, self._stdout, self._stderr):
                pipe.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
