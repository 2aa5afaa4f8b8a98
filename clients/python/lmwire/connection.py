"""One worker: its process, the session with it, and who waits for which request."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from math import inf
from signal import SIGKILL, SIGTERM
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias

from lmwire_protocol import Command, Quit, events

from .coalescing import Coalescing
from .errors import LmwireError, WorkerExited, WorkerLost
from .process import Process, Reader
from .session import Event, Session

_log = logging.getLogger("lmwire")
_KILLED_S = 5.0

Delivery: TypeAlias = list[Event] | LmwireError
"""What came for one request, or the reason why nothing more will come."""


class Mailbox(Protocol):
    """Where a caller waits: a queue without a bound.

    The pipe is read whether or not a caller reads: one slow reader must not stop the other streams, and a stopped
    pipe would stop the worker. An answer's size is bounded by its max_tokens.
    """

    def put_nowait(self, item: Delivery, /) -> None: ...


def put(deliveries: list[tuple[Mailbox, Delivery]]) -> None:
    """Puts each delivery into its mailbox."""
    for mailbox, delivery in deliveries:
        mailbox.put_nowait(delivery)


class _Ending:
    """Stands beside a mailbox, and calls back for whatever comes."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def put_nowait(self, item: Delivery) -> None:
        self._callback()


class Patience(NamedTuple):
    """Seconds that each step of the shutdown may take before the next, ruder one."""

    quit: float = 5.0
    eof: float = 2.0
    term: float = 3.0


class Connection:
    """Everything about a worker that the two faces share. All methods may be called from any thread.

    Args:
        command: the program to spawn, and its arguments.
        deliver: called on the thread that reads, with all that came since the last call; it puts each delivery into
            its mailbox.
        on_stderr: called on the connection's thread with each line of stderr.
        reader: reads the worker's output in place of that thread.

    Raises:
        OSError: the command cannot be spawned.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        deliver: Callable[[list[tuple[Mailbox, Delivery]]], None],
        on_stderr: Callable[[str], None] | None,
        reader: Reader | None = None,
    ) -> None:
        self._deliver = deliver
        self._session = Session()
        self._coalescing = Coalescing()
        self._mailboxes: dict[str, Mailbox] = {}
        self._endings: dict[str, _Ending] = {}
        self._lost: WorkerLost | None = None
        self._lock = threading.Lock()
        with self._lock:  # holds the callbacks back until they find a process
            self._process = Process(
                command, on_output=self._receive, on_exit=self._end, on_stderr=on_stderr, reader=reader
            )

    @property
    def pid(self) -> int:
        """The process that was spawned: the worker, or what leads to it."""
        return self._process.pid

    @property
    def stderr_tail(self) -> list[str]:
        """The last lines of stderr."""
        return self._process.stderr_tail

    @property
    def lost(self) -> WorkerLost | None:
        """Why the worker is gone; None while it lives."""
        return self._lost

    @property
    def works(self) -> bool:
        """Return whether a request is in flight that the worker's engine serves, abandoned ones included."""
        with self._lock:
            return self._session.works

    def send(self, command: Command, mailbox: Mailbox | None = None) -> str:
        """Sends a command without waiting and returns its id. Without a mailbox the answer is dropped.

        Raises:
            WorkerLost: the worker is gone.
        """
        with self._lock:
            if self._lost:
                raise copy(self._lost)  # one each, since raising writes the traceback into it
            id, line = self._session.send(command)
            if mailbox is not None:
                self._mailboxes[id] = mailbox
                self._coalescing.open(id)
            self._process.write(line)
        return id

    def abandon(self, id: str) -> None:
        """Drops what still comes for a request. Its id stays taken until its terminal."""
        with self._lock:
            self._mailboxes.pop(id, None)
            self._endings.pop(id, None)

    def when_ended(self, id: str, callback: Callable[[], None]) -> None:
        """Calls back where the mailboxes are filled, once the request has ended; at once if it has."""
        with self._lock:
            if id in self._mailboxes:
                self._endings[id] = _Ending(callback)
                return
        callback()

    def close(self, patience: Patience) -> None:
        """Ends the worker and returns when it is gone. Does nothing when it is gone already.

        "Drain all pipes, also during shutdown": the thread that reads does, which is never this one.
        """
        # "quit": requests end with their terminals, and the worker exits 0.
        with suppress(WorkerLost):
            self.send(Quit())
        if self._process.wait(patience.quit):
            return
        # "close stdin": ends a worker that could not read the line, and what stands between it and us (ssh).
        self._process.close_stdin()
        if self._process.wait(patience.eof):
            return
        # "SIGTERM to the group": "cancel, terminals, exit 0 within 2 s", even inside an evaluation.
        self._process.signal(SIGTERM)
        if self._process.wait(patience.term):
            return
        # "SIGKILL, each wait bounded".
        self.kill()

    def give_up(self, why: WorkerLost, patience: Patience) -> None:
        """Fails all requests with `why` at once, then ends a worker that does nothing any more.

        A polite end is of no use there: `quit` and the end of stdin let the engine finish first.

        Args:
            why: what the requests fail with, now and later.
            patience: how long SIGTERM may take, before SIGKILL.
        """
        with self._lock:
            if self._lost:
                return
            self._lost = why
            left = self._take_all()
        self._deliver([(mailbox, copy(why)) for mailbox in left])
        self._process.signal(SIGTERM)
        if not self._process.wait(patience.term):
            self.kill()

    def kill(self) -> None:
        """Ends the worker at once."""
        self._process.signal(SIGKILL)
        self._process.wait(_KILLED_S)

    def _receive(self, data: bytes) -> float:
        """Hands on what was read, or keeps it until the time that it returns."""
        now = monotonic()
        with self._lock:
            taken = self._coalescing.take(data, now)
            if not taken:
                return self._coalescing.due_at
            arrivals = self._session.receive(taken)
            self._coalescing.after(arrivals, now)
            deliveries: list[tuple[Mailbox, Delivery]] = []
            for id, arrived in arrivals:
                ended = isinstance(arrived[-1], events.Done | events.Error)
                mailbox = self._mailboxes.pop(id, None) if ended else self._mailboxes.get(id)
                if mailbox is not None:
                    deliveries.append((mailbox, arrived))
                if ended and (ending := self._endings.pop(id, None)):
                    deliveries.append((ending, arrived))
            notices, self._session.notices = self._session.notices, []
        if deliveries:
            self._deliver(deliveries)
        for notice in notices:
            _log.warning("worker %d: %s: %s", self.pid, notice.code, notice.error)
        if self._session.violation:
            self._process.signal(SIGKILL)
        return inf

    def _end(self, returncode: int) -> None:
        with self._lock:
            self._coalescing.end()
        self._receive(b"")
        with self._lock:
            lost = self._lost or self._session.violation or WorkerExited(returncode, self._process.stderr_tail)
            self._lost = lost
            self._session.finish()
            left = self._take_all()
        self._deliver([(mailbox, copy(lost)) for mailbox in left])

    def _take_all(self) -> list[Mailbox]:
        """Empties what knows of requests, with the lock held, and returns who still waits."""
        left: list[Mailbox] = [*self._mailboxes.values(), *self._endings.values()]
        self._mailboxes, self._endings = {}, {}
        return left
