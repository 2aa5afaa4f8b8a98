"""The process's standard pipes, isolated from all other code before anything else happens.

Libraries print to stdout (mlx_lm warns there) and ask questions on stdin (transformers' remote-code prompt). Both
would break the protocol, so the real pipes move to descriptors that only the worker knows and no child inherits.
"""

import fcntl
import io
import os
import select
import sys

from .stderr_log import Log

_PRINTED_BYTES = 2000


class Pipes:
    """The host's ends. `stdin` reads commands, `stdout` takes events, `printed` is what anyone else writes to fd 1."""

    def __init__(self, stdin: int, stdout: int, stray_stdout: int) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stray_stdout = stray_stdout

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes that have arrived, and wait for the first; empty at the end of the stream."""
        while True:
            try:
                return os.read(self.stdin, size)
            except BlockingIOError:  # the host shares a descriptor that it made non-blocking
                select.select([self.stdin], [], [])
            except OSError:  # a terminal that was hung up, a socket whose other end is gone: nothing more will come
                return b""

    def write(self, data: bytes) -> None:
        """Write all of `data`."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.stdout, view) :]
            except BlockingIOError:
                select.select([], [self.stdout], [])


def isolate_stdio() -> Pipes:
    """Move the protocol to private descriptors. Fd 0 becomes the null device, and fd 1 a pipe that is logged.

    Raises:
        OSError: Stdout is closed.
    """
    os.fstat(1)
    while (null := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(null, True)  # started with it closed: nothing else may get this number
    # From 3 up, so that a private pipe never sits on a number that means something to a library.
    stdin = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    stdout = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(null, 0)
    printed, into = os.pipe()
    os.dup2(into, 1)
    os.close(into)
    os.close(null)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)
    return Pipes(stdin, stdout, printed)


def log_stray_stdout(stray_stdout: int, log: Log) -> None:
    """Log the text that is printed to fd 1, in bounded lines, until all writers have closed the pipe.

    Args:
        stray_stdout: Descriptor of the pipe that stands for fd 1.
        log: The log for people.
    """
    rest = b""
    while data := os.read(stray_stdout, 65536):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _PRINTED_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            if line.strip():
                log(f"printed to stdout: {line[:_PRINTED_BYTES].decode('utf-8', 'replace')}")
