"""The worker's side of a sandbox: starts the process, asks it, and replaces it after it exceeded a limit."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from . import messages

CPU_SECONDS: Final = 5
"""Maximum processor time of one answer, in seconds. Other processes' load does not count."""
MEMORY_BYTES: Final = 2**30
"""Maximum address space of a sandbox, in bytes. macOS does not enforce it."""
RESPONSE_TIMEOUT_S: Final = 120.0
"""Maximum time to wait for an answer, in seconds on the clock."""


class LimitExceeded(Exception):
    """A sandbox exceeded a limit. The message names it, such as "takes longer than 5 s"."""


class Sandbox:
    """One sandbox process, which starts on first use. Any thread may ask it; it answers one question at a time.

    Args:
        first_question: Returns the first question to each new process; None to ask none.
    """

    def __init__(self, first_question: Callable[[], dict[str, Any]] | None = None) -> None:
        self._first_question = first_question
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process now, so that the first question does not wait for the start."""
        with self._lock:
            self._running_process()

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the sandbox's answer.

        Raises:
            LimitExceeded: The answer takes too much time or memory.
        """
        with self._lock:
            process = self._running_process()
            try:
                return _round_trip(process, question)
            except (OSError, EOFError):
                self._process = None
                raise LimitExceeded(_limit_sentence(_end(process))) from None

    def close(self) -> None:
        """End the process. The question in progress fails."""
        if (process := self._process) is not None:
            process.kill()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            if self._process is not None:
                _end(self._process)
            self._process = _start()
            if self._first_question is not None:
                _round_trip(self._process, self._first_question())
        return self._process


def _start() -> subprocess.Popen[bytes]:
    # The sandbox must not inherit the worker's stderr: the host would wait for that pipe to close.
    command = [sys.executable, "-P", "-m", __package__, str(CPU_SECONDS), str(MEMORY_BYTES)]
    return subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _round_trip(process: subprocess.Popen[bytes], question: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin and process.stdout
    remaining = memoryview(messages.encode(question))
    while remaining:
        remaining = remaining[process.stdin.write(remaining) :]
    return messages.read(_Receiver(process.stdout.fileno()))


class _Receiver:
    """Reads from a pipe, and waits at most `RESPONSE_TIMEOUT_S` for data."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def __call__(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            if not self._poll.poll(RESPONSE_TIMEOUT_S * 1000):
                raise EOFError
            received = os.read(self._descriptor, size - len(data))
            if not received:
                break
            data += received
        return bytes(data)


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a process if it has not exited, and return its exit status."""
    assert process.stdin and process.stdout
    process.stdin.close()
    try:
        status = process.wait(1)  # a process that closed its pipe is about to exit with a status that has the reason
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    process.stdout.close()
    return status


def _limit_sentence(status: int) -> str:
    if status == -signal.SIGPROF:
        return f"takes longer than {CPU_SECONDS} s"
    if status in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS):
        return f"needs more than {MEMORY_BYTES // 2**20} MiB of memory"
    return f"ends the process that it runs in (status {status})"
