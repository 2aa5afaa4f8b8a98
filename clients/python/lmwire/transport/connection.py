"""The connection to one worker: its process, the session with it, and the queues of the waiting callers."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from math import inf
from signal import SIGKILL, SIGTERM
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias

from lmwire_protocol import Command, Quit, events

from ..errors import LmwireError, WorkerClosed, WorkerExited, WorkerLost
from ..protocol.session import ClientSession, Event
from .child import Spawn, spawn_process
from .process import OutputReader, Process
from .token_coalescer import TokenCoalescer

_KILL_TIMEOUT_S = 30.0
"""Longest wait for the end of a killed worker. A host that was stopped itself meanwhile must not take it for alive."""

Delivery: TypeAlias = list[Event] | LmwireError
"""New events of one request, or the error that ends it."""


class ResponseQueue(Protocol):
    """The unbounded queue on which a caller waits for its request's events.

    The pipe is read whether or not a caller reads: one slow caller must not stop the other streams, and a full pipe
    would stop the worker. `max_tokens` bounds the size of an answer.
    """

    def put_nowait(self, item: Delivery, /) -> None:
        """Add a delivery without waiting."""


def deliver_all(deliveries: list[tuple[ResponseQueue, Delivery]]) -> None:
    """Put each delivery into its queue."""
    for queue, delivery in deliveries:
        queue.put_nowait(delivery)


class _EndCallback:
    """A queue that calls back at the delivery of its request's end."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def put_nowait(self, item: Delivery) -> None:
        self._callback()


class ShutdownTimeouts(NamedTuple):
    """Longest time of each step of a shutdown, in seconds. The next step is more forceful."""

    quit: float = 5.0
    """After the `quit` command."""
    eof: float = 2.0
    """After the close of stdin."""
    term: float = 3.0
    """After SIGTERM. SIGKILL follows."""


class Connection:
    """The connection to one worker, for both the threaded and the asyncio API. Its methods are thread-safe.

    Args:
        command: The program to spawn, and its arguments.
        deliver: Called on the reading thread with all deliveries since the last call. Puts each into its queue.
        on_stderr: Called on the connection's thread with each line of stderr.
        reader: Reads the worker's output instead of that thread.
        spawn: Starts the program.

    Raises:
        OSError: The command cannot be spawned.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        deliver: Callable[[list[tuple[ResponseQueue, Delivery]]], None],
        on_stderr: Callable[[str], None] | None,
        reader: OutputReader | None = None,
        spawn: Spawn = spawn_process,
    ) -> None:
        self._deliver = deliver
        self._session = ClientSession()
        self._coalescer = TokenCoalescer()
        self._queues: dict[str, ResponseQueue] = {}
        self._end_callbacks: dict[str, _EndCallback] = {}
        self._lost: WorkerLost | None = None
        self._quit_sent = False
        self._lock = threading.Lock()
        with self._lock:  # the callbacks wait until `_process` is set
            self._process = Process(
                command,
                on_output=self._receive,
                on_exit=self._end,
                on_stderr=on_stderr,
                reader=reader,
                spawn=spawn,
            )

    @property
    def pid(self) -> int:
        """Return the id of the spawned process: the worker, or a program that leads to it."""
        return self._process.pid

    @property
    def stderr_tail(self) -> list[str]:
        """Return the last lines of stderr."""
        return self._process.stderr_tail

    @property
    def lost(self) -> WorkerLost | None:
        """Return the reason why the worker is gone, or None while it is alive."""
        return self._lost

    @property
    def busy(self) -> bool:
        """Return whether a request is in flight that the worker's engine serves, abandoned ones included."""
        with self._lock:
            return self._session.busy

    def send(self, command: Command, queue: ResponseQueue | None = None) -> str:
        """Send a command without waiting, and return its id.

        Args:
            command: The command.
            queue: Gets the events of its request. Without it they are dropped.

        Raises:
            WorkerLost: The worker is gone.
        """
        with self._lock:
            if self._lost:
                raise copy(self._lost)  # a copy for each caller, since raising sets its traceback
            id, line = self._session.send(command)
            self._quit_sent = self._quit_sent or isinstance(command, Quit)
            if queue is not None:
                self._queues[id] = queue
                self._coalescer.add_request(id)
            self._process.write(line)
        return id

    def abandon(self, id: str) -> None:
        """Drop all further events of a request. Its id stays taken until its terminal."""
        with self._lock:
            self._queues.pop(id, None)
            self._end_callbacks.pop(id, None)

    def when_ended(self, id: str, callback: Callable[[], None]) -> None:
        """Call back once a request has ended.

        Args:
            id: The request's id.
            callback: Called where the deliveries are made, or at once if the request has ended.
        """
        with self._lock:
            if id in self._queues:
                self._end_callbacks[id] = _EndCallback(callback)
                return
        callback()

    def close(self, timeouts: ShutdownTimeouts) -> None:
        """End the worker by the steps of [H-7], and return when it is gone. Do nothing if it is gone already.

        Another thread reads the pipes to their end meanwhile.
        """
        # `quit`: all requests end with their terminals, and the worker exits with 0.
        with suppress(WorkerLost):
            self.send(Quit())
        if self._process.wait(timeouts.quit):
            return
        # The close of stdin ends a worker that could not read the line, and a program in between, such as ssh.
        self._process.close_stdin()
        if self._process.wait(timeouts.eof):
            return
        # SIGTERM to the group: the worker cancels, writes the terminals and exits in 2 s, even during an evaluation.
        self._process.signal(SIGTERM)
        if self._process.wait(timeouts.term):
            return
        self.kill()

    def abort(self, reason: WorkerLost, timeouts: ShutdownTimeouts) -> None:
        """Fail all requests at once, then end a worker that hangs.

        `quit` and the close of stdin would not help: both let the engine finish its step first.

        Args:
            reason: The error of all requests, now and later.
            timeouts: Its `term` bounds the time from SIGTERM to SIGKILL.
        """
        with self._lock:
            if self._lost:
                return
            self._lost = reason
            waiting = self._remove_all_requests()
        self._deliver([(queue, copy(reason)) for queue in waiting])
        self._process.signal(SIGTERM)
        if not self._process.wait(timeouts.term):
            self.kill()

    def kill(self) -> None:
        """Kill the worker, and wait until it is gone."""
        self._process.signal(SIGKILL)
        self._process.wait(_KILL_TIMEOUT_S)

    def _receive(self, data: bytes) -> float:
        """Deliver the events in the data, or hold them back. Return the time at which those are due."""
        now = monotonic()
        with self._lock:
            ready = self._coalescer.feed(data, now)
            if not ready:
                return self._coalescer.due_at
            received = self._session.receive(ready)
            self._coalescer.delivered(received, now)
            deliveries: list[tuple[ResponseQueue, Delivery]] = []
            for id, new in received:
                ended = isinstance(new[-1], events.Done | events.Error)
                queue = self._queues.pop(id, None) if ended else self._queues.get(id)
                if queue is not None:
                    deliveries.append((queue, new))
                if ended and (end_callback := self._end_callbacks.pop(id, None)):
                    deliveries.append((end_callback, new))
            notices = self._session.take_notices()
        if deliveries:
            self._deliver(deliveries)
        for notice in notices:
            self._log(notice)
        if self._session.violation:
            self._process.signal(SIGKILL)
        return inf

    def _log(self, notice: events.Error) -> None:
        import logging  # few workers send one, and every start would be slower

        logging.getLogger("lmwire").warning("worker %d: %s: %s", self.pid, notice.code, notice.error)

    def _end(self, returncode: int) -> None:
        with self._lock:
            self._coalescer.stop_delay()
        self._receive(b"")
        with self._lock:
            lost = self._lost or self._session.violation or WorkerExited(returncode, self._process.stderr_tail)
            # A request in flight fails with the cause. A later one is a mistake of the program, which has sent `quit`.
            self._lost = WorkerClosed(returncode, self._process.stderr_tail) if self._quit_sent else lost
            self._session.finish()
            waiting = self._remove_all_requests()
        self._deliver([(queue, copy(lost)) for queue in waiting])

    def _remove_all_requests(self) -> list[ResponseQueue]:
        """Forget all requests, and return the queues that still wait. Called with the lock held."""
        waiting: list[ResponseQueue] = [*self._queues.values(), *self._end_callbacks.values()]
        self._queues, self._end_callbacks = {}, {}
        return waiting
