"""The socket at which the workers that a host starts report to the kit."""

import shutil
import socket
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

_REMOTE_WORKER: Final = Path(__file__).with_name("remote_worker.py")


class WorkerListener:
    """A listening socket in a folder of its own.

    Attributes:
        worker_command: Starts a worker that connects to this socket.
    """

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="lmwire")
        address = f"{self._folder}/kit"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(address)
        self._socket.listen()
        # Isolated and without site-packages: the worker needs neither, and starts in a third of the time.
        self.worker_command = [sys.executable, "-I", "-S", str(_REMOTE_WORKER), address]

    def accept(self, seconds: float) -> Connection | None:
        """Return the connection of the next worker, or None if no worker connects within some seconds."""
        self._socket.settimeout(seconds)
        try:
            accepted, _ = self._socket.accept()
        except (TimeoutError, BlockingIOError):
            return None
        accepted.setblocking(True)
        return Connection(accepted.detach())

    def drop_waiting(self) -> None:
        """Close the connections that nobody accepted."""
        while connection := self.accept(0):
            connection.close()

    def close(self) -> None:
        """Close the socket and remove its folder."""
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)
