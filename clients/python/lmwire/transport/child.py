"""Start a worker's program as a child process.

It imports little: `lmwire chat` starts its worker before it imports the rest of the client.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from signal import Signals
from typing import IO, Protocol, TypeAlias

from ..child_process import child_environment


class Child(Protocol):
    """A program that has been started, and the host's ends of its pipes."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def wait(self) -> int:
        """Wait for the program's end, and return its exit code or the signal's negated number."""
        ...

    def signal(self, signal: Signals, /) -> None:
        """Send a signal to the program and its own children, and ignore that they have ended.

        It may follow `wait` at once, to end children that the program has left.
        """
        ...


Spawn: TypeAlias = Callable[[Sequence[str]], Child]
"""Starts a command without waiting. Its pipes are unbuffered. It raises OSError if the command cannot be started."""


class _ChildProcess:
    """A child process that leads a process group.

    In its own session, Ctrl-C in the host's terminal reaches only the host. Signals to the process group reach only the
    command and its children, such as a shell's or a container client's.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env=child_environment(),
        )
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self.stdin, self.stdout, self.stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        self.pid = self._popen.pid

    def wait(self) -> int:
        if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            with suppress(ChildProcessError):  # another part of the program has reaped it
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
                self.signal(Signals.SIGKILL)  # its children, while the group's id cannot belong to others
        return self._popen.wait()

    def signal(self, signal: Signals) -> None:
        # After `wait`, the group's id still belongs to the children: the system assigns ids in turn, and this one was
        # free for only microseconds.
        with suppress(ProcessLookupError, PermissionError):  # macOS raises the second for a group of zombies
            os.killpg(self.pid, signal)


def spawn_process(command: Sequence[str]) -> Child:
    """Start a command as a child process; `Spawn` has the errors."""
    return _ChildProcess(command)
