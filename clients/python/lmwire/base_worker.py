"""The base of both worker classes: how a worker is started, and its state. Nothing here waits."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from lmwire_protocol import Command, Hello, __version__, events

from .child_process import DEFAULT_COMMAND, missing_bundle_hint
from .errors import LmwireError, StartFailed, UnsupportedByWorker, WorkerLost
from .protocol.features import features_used
from .transport.child import Spawn, spawn_process
from .transport.connection import Connection, Delivery, ResponseQueue, ShutdownTimeouts
from .transport.process import OutputReader


class BaseWorker:
    """A worker's start and state.

    Tokens are delivered every 30 ms, or every 50 ms while eight or more requests get some: to wake for each token would
    take a small machine's time from the model. They are delivered sooner while another request waits for its first
    token. All other events are delivered at once.

    Args:
        command: The program that is the worker or leads to it, such as `["ssh", "-T", "host", "lmwire", "worker"]` or
            `["docker", "exec", "-i", "name", "lmwire", "worker"]`. None runs this installation's own worker.
        watch_host: Whether the worker ends when this process ends, even while another process holds its pipes open. It
            must be a child of this process on this machine, so the default is True only without `command`.
        on_stderr: Called with each line of the worker's stderr, on a thread of this object. It must not wait for the
            worker, and an exception from it ends the worker. `stderr_tail` has the last lines in any case.
        start_timeout: Longest time until the reply to `hello`, in seconds.
        shutdown_timeouts: Longest time of each step of `close`.
        spawn: Starts the command. A test may run its worker on a thread of its own process.
    """

    hello: events.HelloDone
    """The worker's reply to `hello`, once it has started."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        watch_host: bool | None = None,
        on_stderr: Callable[[str], None] | None = None,
        start_timeout: float = 30.0,
        shutdown_timeouts: ShutdownTimeouts = ShutdownTimeouts(),  # noqa: B008 (immutable)
        spawn: Spawn = spawn_process,
    ) -> None:
        self._command = list(DEFAULT_COMMAND if command is None else command)
        self._watch_host = command is None if watch_host is None else watch_host
        self._on_stderr = on_stderr
        self._start_timeout = start_timeout
        self._shutdown_timeouts = shutdown_timeouts
        self._spawn_child = spawn
        self._started: Connection | None = None

    @property
    def pid(self) -> int:
        """Return the id of the spawned process."""
        return self._connection.pid

    @property
    def lost(self) -> WorkerLost | None:
        """Return the reason why the worker is gone, or None while it is alive."""
        return self._connection.lost

    @property
    def busy(self) -> bool:
        """Return whether the worker's engine has a request to serve; `ping` and `stats` do not count."""
        return self._connection.busy

    @property
    def stderr_tail(self) -> list[str]:
        """Return the last 64 lines of the worker's stderr."""
        return self._connection.stderr_tail

    @property
    def _connection(self) -> Connection:
        if self._started is None:
            raise RuntimeError("the worker has not been started: use `with`, or call start()")
        return self._started

    def _connection_for(self, command: Command) -> Connection:
        """Return the connection, if the worker supports the command.

        Raises:
            UnsupportedByWorker: The worker lacks a feature that the command uses.
        """
        connection = self._connection
        if used := features_used(command):
            missing = used.difference(self.hello.features)
            if missing:
                raise UnsupportedByWorker(self.hello.worker, sorted(missing))
        return connection

    def _spawn(
        self,
        deliver: Callable[[list[tuple[ResponseQueue, Delivery]]], None],
        reader: OutputReader | None = None,
    ) -> Hello:
        """Spawn the worker, and return the first command to send."""
        if self._started is not None:
            raise RuntimeError("a worker can be started once; make another")
        try:
            self._started = Connection(
                self._command, deliver=deliver, on_stderr=self._on_stderr, reader=reader, spawn=self._spawn_child
            )
        except OSError as error:
            remedy = missing_bundle_hint(self._command[0])
            raise StartFailed(f"cannot run {self._command[0]!r}: {error}{remedy}") from error
        return Hello(client=f"lmwire-python/{__version__}", host_pid=os.getpid() if self._watch_host else None)

    @contextmanager
    def _handshake(self) -> Generator[None]:
        """Kill the worker if it does not reply to `hello`."""
        try:
            yield
        except LmwireError as error:
            self._connection.kill()
            raise StartFailed(f"{' '.join(self._command)!r} does not answer as a worker: {error}") from error
        except BaseException:
            self._connection.kill()
            raise
