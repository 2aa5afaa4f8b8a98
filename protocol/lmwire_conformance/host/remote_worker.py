"""The worker process that the kit plays. It has no behaviour of its own: it carries out the kit's orders.

`python remote_worker.py SOCKET` connects to the kit and carries out its orders, one at a time, each with a reply. It
reads a line from the host only on order, so the kit decides whether a pipe fills up. When the kit is gone, it ends.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Client

_READ_BYTES = 64 * 1024
_STANDARD_DESCRIPTORS = (0, 1, 2)


class RemoteWorker:
    """One process under orders. Every public method except `run` is an order.

    Args:
        address: The kit's socket.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._unread = bytearray()

    def run(self) -> None:
        """Introduce the process to the kit, and carry out orders until the kit disconnects."""
        self._kit = Client(self._address)
        with suppress(EOFError, OSError):
            terminals = [*filter(os.isatty, _STANDARD_DESCRIPTORS)]
            ids = {"pid": os.getpid(), "group": os.getpgrp(), "parent": os.getppid()}
            self._kit.send({**ids, "terminals": terminals})
            while True:
                order, *arguments = self._kit.recv()
                self._kit.send(getattr(self, order)(*arguments))

    def read_line(self) -> bytes | None:
        """Return the host's next line with its newline, the rest before the end without it, or None at the end."""
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if not (data := os.read(0, _READ_BYTES)):
                end = searched
                break
            self._unread += data
        line = bytes(self._unread[: end + 1])
        del self._unread[: end + 1]
        return line or None

    def input_ends_within(self, seconds: float) -> bool:
        """Return whether the host closes stdin within some seconds. What it writes meanwhile is read later."""
        deadline = time.monotonic() + seconds
        while select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not (data := os.read(0, _READ_BYTES)):
                return True
            self._unread += data
        return False

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of the data to a pipe, waiting while the pipe is full."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def close(self, descriptor: int) -> None:
        """Close a pipe."""
        os.close(descriptor)

    def block_signal(self, number: int) -> None:
        """Block a signal: from now on it stays pending, and the process survives it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [number])

    def pending_signals(self) -> list[int]:
        """Return the blocked signals that arrived."""
        return [int(number) for number in signal.sigpending()]

    def end(self, status: int) -> None:
        """Exit with a code, or die of a signal, given as a negative number."""
        if status < 0:
            os.kill(os.getpid(), -status)
        os._exit(status)

    def fork(self, daemon: bool) -> None:
        """Start a child that holds the pipes open and takes its own orders. A daemon leaves the process group."""
        if os.fork() == 0:
            self._kit.close()
            if daemon:
                os.setsid()
            self.run()
            os._exit(0)


if __name__ == "__main__":
    RemoteWorker(sys.argv[1]).run()
