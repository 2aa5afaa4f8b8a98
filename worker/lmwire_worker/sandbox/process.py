"""The worker's side of a sandbox: starts it, asks it, and replaces one that came to its limits."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from . import frames

PROCESSOR_SECONDS: Final = 5
"""Processor time for one answer. A busy machine does not use it up."""
MEMORY_BYTES: Final = 2**30
"""Address space of a sandbox, where the system honours such a limit (macOS does not)."""
PATIENCE_S: Final = 120.0
"""Time on the clock after which a sandbox that has not answered is given up, whatever holds it."""


class Exhausted(Exception):
    """A sandbox came to one of its limits. The text says to which, as `takes longer than 5 s`."""


class Sandbox:
    """One process, started when it is first needed. May be asked from any thread; it answers one at a time.

    Args:
        opening: Returns what a fresh process is told first; None for nothing.
    """

    def __init__(self, opening: Callable[[], dict[str, Any]] | None = None) -> None:
        self._opening = opening
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process now, so that the first question need not wait for it."""
        with self._lock:
            self._running()

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the sandbox's answer.

        Raises:
            Exhausted: The answer takes more than there is.
        """
        with self._lock:
            process = self._running()
            try:
                return _exchange(process, question)
            except (OSError, EOFError):
                self._process = None
                raise Exhausted(_reason(_end(process))) from None

    def close(self) -> None:
        """End the process. A question that it is at fails."""
        if (process := self._process) is not None:
            process.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            if self._process is not None:
                _end(self._process)
            self._process = _start()
            if self._opening is not None:
                _exchange(self._process, self._opening())
        return self._process


def _start() -> subprocess.Popen[bytes]:
    # It gets pipes of its own. A sandbox that kept the worker's stderr open would keep its host waiting.
    command = [sys.executable, "-P", "-m", __package__, str(PROCESSOR_SECONDS), str(MEMORY_BYTES)]
    return subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _exchange(process: subprocess.Popen[bytes], question: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin and process.stdout
    remaining = memoryview(frames.encode(question))
    while remaining:
        remaining = remaining[process.stdin.write(remaining) :]
    return frames.read(_Receiver(process.stdout.fileno()))


class _Receiver:
    """Reads from a pipe, and waits for no more than `PATIENCE_S`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def __call__(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            if not self._poll.poll(PATIENCE_S * 1000):
                raise EOFError
            received = os.read(self._descriptor, size - len(data))
            if not received:
                break
            data += received
        return bytes(data)


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a process, if it has not ended by itself, and return its exit status."""
    assert process.stdin and process.stdout
    process.stdin.close()
    try:
        status = process.wait(1)  # one that has closed its pipe is about to end, and its status says why
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    process.stdout.close()
    return status


def _reason(status: int) -> str:
    if status == -signal.SIGPROF:
        return f"takes longer than {PROCESSOR_SECONDS} s"
    if status in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS):
        return f"needs more than {MEMORY_BYTES // 2**20} MiB of memory"
    return f"ends the process that it runs in (status {status})"
