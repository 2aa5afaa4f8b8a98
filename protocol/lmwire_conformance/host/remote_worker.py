"""The worker that the kit plays: a process without a will of its own, between a host's pipes and the kit.

`python remote_worker.py SOCKET` connects to the kit and carries out its orders, one at a time, each with an answer. It reads a
line from the host only when it is told to, so the kit decides whether a pipe fills up. When the kit is gone it ends.
"""

import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Client

_READ_BYTES = 64 * 1024
_STANDARD = (0, 1, 2)


class RemoteWorker:
    """One process under orders; every public method is an order.

    Args:
        address: the kit's socket.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._unread = b""

    def run(self) -> None:
        """Tells the kit who is there and carries out orders until the kit hangs up."""
        self._kit = Client(self._address)
        with suppress(EOFError, OSError):
            self._kit.send({"pid": os.getpid(), "group": os.getpgrp(), "terminals": [*filter(os.isatty, _STANDARD)]})
            while True:
                order, *arguments = self._kit.recv()
                self._kit.send(getattr(self, order)(*arguments))

    def read_line(self) -> bytes | None:
        """The host's next line with its newline; what is left before the end without; None at the end."""
        while b"\n" not in self._unread:
            data = os.read(0, _READ_BYTES)
            if not data:
                line, self._unread = self._unread, b""
                return line or None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line + b"\n"

    def write(self, descriptor: int, data: bytes) -> None:
        """Writes all of it, waiting while the pipe is full."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def close(self, descriptor: int) -> None:
        """Closes a pipe."""
        os.close(descriptor)

    def block_signal(self, number: int) -> None:
        """Takes note of a signal from now on instead of dying of it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])

    def pending_signals(self) -> list[int]:
        """The signals that came and were held."""
        return [int(number) for number in signal.sigpending()]

    def end(self, status: int) -> None:
        """Exits with a code, or dies of the signal whose negative is given."""
        if status < 0:
            os.kill(os.getpid(), -status)
        os._exit(status)

    def fork(self, daemon: bool) -> None:
        """Starts a child that holds the pipes open and takes orders of its own; a daemon leaves the process group."""
        if os.fork() == 0:
            self._kit.close()
            if daemon:
                os.setsid()
            self.run()
            os._exit(0)


if __name__ == "__main__":
    RemoteWorker(sys.argv[1]).run()
