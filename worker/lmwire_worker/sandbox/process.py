"""The worker's side of a sandbox: starts the process, asks it, and replaces it after it has been ended.

Questions and answers are JSON, a line each. They preserve lone surrogates, which a template can write.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

CPU_SECONDS: Final = 5
"""Maximum processor time of one answer, in seconds. Other processes' load does not count."""
MEMORY_BYTES: Final = 2**30
"""Maximum address space of a sandbox, in bytes. macOS does not enforce it."""
RESPONSE_TIMEOUT_S: Final = 120.0
"""Maximum time to wait for an answer, in seconds on the clock, besides four times its processor time."""
_READ_BYTES: Final = 64 * 1024
EXIT_TIMEOUT_S: Final = 30.0
"""Maximum time for a process that has closed its pipe to exit, in seconds. A busy machine may give it none for some."""


class Limits(NamedTuple):
    """The most that one answer may take."""

    cpu_seconds: float = CPU_SECONDS
    memory_bytes: int = MEMORY_BYTES


DEFAULT_LIMITS: Final = Limits()


class LimitExceeded(Exception):
    """A sandbox exceeded a limit. The message names it, such as "takes longer than 5 s"."""


class Sandbox:
    """One sandbox process, which starts on first use. Any thread may ask it; it answers one question at a time.

    Args:
        first_question: Returns the first question to each new process; None to ask none.
        start_limits: What the answer to the first question may take.
    """

    def __init__(
        self, first_question: Callable[[], dict[str, Any]] | None = None, start_limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._first_question = first_question
        self._start_limits = start_limits
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process now, so that the first question does not wait for the start."""
        with self._lock:
            self._running_process()

    def ask(self, question: dict[str, Any], limits: Limits | None = None) -> dict[str, Any]:
        """Return the sandbox's answer. The process is ended if the work of the present thread is cancelled meanwhile.

        Args:
            question: The question's `subject`, and its arguments.
            limits: What the answer may take; None for `DEFAULT_LIMITS`.

        Raises:
            LimitExceeded: The answer takes too much time or memory.
            WorkCancelled: Nobody waits for the answer.
        """
        cancellation = current_cancellation()
        with self._lock:
            cancellation.check()
            try:
                with cancellation.ends_by(self.close):
                    return self._round_trip(self._running_process(), question, limits or DEFAULT_LIMITS)
            except WorkCancelled:
                self._discard()  # it may have answered, and be ending now
                raise

    def close(self) -> None:
        """End the process. The question in progress fails."""
        if (process := self.process) is not None:
            process.kill()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self._discard()
            self.process = _start()
            current_cancellation().check()  # `close` had no process to end until now
            if self._first_question is not None:
                self._round_trip(self.process, self._first_question(), self._start_limits)
        return self.process

    def _discard(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            _end(process)

    def _round_trip(self, process: subprocess.Popen[bytes], question: dict[str, Any], limits: Limits) -> dict[str, Any]:
        timeout_s = RESPONSE_TIMEOUT_S + 4 * limits.cpu_seconds
        try:
            return _round_trip(process, {**question, "limits": limits}, timeout_s)
        except TimeoutError:
            self._discard()
            raise LimitExceeded(f"gives no answer in {timeout_s:.0f} s") from None
        except (OSError, EOFError):
            self.process = None
            raise LimitExceeded(_limit_sentence(_end(process), limits)) from None


_ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    # One thread for each text: each further one would take a part of the address space.
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


def _start() -> subprocess.Popen[bytes]:
    # The sandbox must not inherit the worker's stderr: the host would wait for that pipe to close.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", str(__package__)],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | _ENVIRONMENT,
    )


def _round_trip(process: subprocess.Popen[bytes], question: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    assert process.stdin and process.stdout
    line = json.dumps(question, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
    remaining = memoryview(line)
    while remaining:
        remaining = remaining[process.stdin.write(remaining) :]
    return json.loads(_read_line(process.stdout.fileno(), timeout_s))


def _read_line(pipe: int, timeout_s: float) -> bytearray:
    """Read an answer, and wait at most some seconds for each part of it.

    Args:
        pipe: The descriptor of the sandbox's stdout.
        timeout_s: The longest wait, in seconds.

    Raises:
        TimeoutError: No part has come in this time.
        EOFError: The pipe has ended.
    """
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    line = bytearray()
    while not line.endswith(b"\n"):
        if not poll.poll(timeout_s * 1000):
            raise TimeoutError
        received = os.read(pipe, _READ_BYTES)
        if not received:
            raise EOFError
        line += received
    return line


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a process if it has not exited, and return its exit status."""
    assert process.stdin and process.stdout
    process.stdin.close()
    try:
        status = process.wait(
            EXIT_TIMEOUT_S
        )  # a process that closed its pipe is about to exit with a status that has the reason
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    process.stdout.close()
    return status


def _limit_sentence(status: int, limits: Limits) -> str:
    if status == -signal.SIGPROF:
        return f"takes longer than {limits.cpu_seconds:.0f} s"
    if status in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS):
        return f"needs more than {limits.memory_bytes // 2**20:,} MiB of memory"
    return f"ends the process that it runs in (status {status})"


# The end of work that nobody waits for. A thread cannot be interrupted, but the process that it asks can be ended. A
# thread works for one request at a time, which is its current cancellation's. Whatever asks another process meanwhile
# names the action that ends it.


class WorkCancelled(Exception):
    """Nobody waits for the work. It is raised in the thread that does it, and no host sees it."""


class Cancellation:
    """The state of one piece of work, and the action that ends it. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._action: Callable[[], object] | None = None
        self.is_set = False
        """True once nobody waits for the work."""

    def set(self) -> None:
        """Cancel the work, and end what it waits for."""
        with self._lock:
            self.is_set = True
            if self._action is not None:
                self._action()

    def check(self) -> None:
        """Raise WorkCancelled if the work was cancelled."""
        if self.is_set:
            raise WorkCancelled

    @contextmanager
    def ends_by(self, action: Callable[[], object]) -> Iterator[None]:
        """Let `set` call an action while the block runs, and not after it.

        Args:
            action: Ends what the block waits for, at once, from another thread.

        Raises:
            WorkCancelled: The work was cancelled before the block or in it.
        """
        with self._lock:
            self.check()
            self._action = action
        try:
            yield
        finally:
            with self._lock:
                self._action = None
            self.check()

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """Make this the cancellation of the present thread's work while the block runs."""
        before = current_cancellation()
        _current.work = self
        try:
            yield
        finally:
            _current.work = before


_current: Final = threading.local()
_NEVER: Final = Cancellation()


def current_cancellation() -> Cancellation:
    """Return the cancellation of the present thread's work; one that never happens if the thread has none."""
    return getattr(_current, "work", _NEVER)
