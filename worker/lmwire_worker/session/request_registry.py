"""The requests in flight, under one lock that decides every terminal.

The caller that removes an id from the registry owns its terminal, and queues it before the lock is released. A cancel,
a timeout, a quit, a dead engine and a request's own end may race: exactly one of them writes the last line, and no
event of that request follows it.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from lmwire_protocol import Cancel, Load, Ping, RequestError, encode_event, error_event, limits
from lmwire_protocol.events import CancelDone, Done, PingDone, QuitDone, RequestStats, State

from ..engine.interface import OutputEvent, Status
from .output_queue import OutputQueue
from .request_state import CancelReason, Request

_RESTING: Final = ("idle", "paused")
"""States in which the engine computes nothing, so that no progress is due."""


class RequestRegistry:
    """The requests in flight, the queue into the engine, and whether the worker drains.

    Args:
        outbox: Takes the terminals.
        clock: Returns the time in seconds, for deadlines, timings and `ping`.
    """

    def __init__(self, outbox: OutputQueue, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        """The clock of all requests."""
        self._output = outbox
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # for the engine, and for the thread that waits for the end
        self._live: dict[str, Request] = {}
        self._quits: dict[str, Request] = {}
        self._inbox: deque[Request] = deque()
        self._cancelled: list[Request] = []
        self._line_bytes = 0
        self._counts = dict.fromkeys(("accepted", "done", "errors", "cancelled"), 0)
        self._has_first_line = False
        self.activity = Activity(clock)
        """Set by the engine, reported by `ping`."""
        self.draining = False
        self.model_loaded = False
        """Set by the engine, reported by a failed load."""

    # The reader's side.

    def accept(self, request: Request) -> None:
        """Register a request and pass it to the engine.

        Raises:
            RequestError: duplicate_id, busy or draining; the request is not registered.
        """
        with self._lock:
            self._check_id_is_free(request.id)
            if self.draining:
                raise RequestError("draining", "the worker is quitting and takes no further requests")
            if len(self._live) >= limits.REQUESTS:
                raise RequestError("busy", f"{limits.REQUESTS} requests are unfinished; send it again when some end")
            if self._line_bytes + request.line_bytes > limits.QUEUED_BYTES:
                raise RequestError("busy", f"unfinished requests hold {self._line_bytes} bytes; send it again later")
            self._live[request.id] = request
            self._line_bytes += request.line_bytes
            self._counts["accepted"] += 1
            self._inbox.append(request)
            self.activity.rouse()
            self._changed.notify_all()

    def reply(self, id: str, line: bytes) -> None:
        """Answer a command that the reader serves itself.

        Args:
            id: The command's id.
            line: The reply.

        Raises:
            RequestError: duplicate_id.
        """
        with self._lock:
            self._check_id_is_free(id)
            self._output.put_reply(line)

    def refuse(self, error: RequestError, id: str | None, protocols: list[int] | None = None) -> None:
        """Answer a line that does not hold a request. A request in flight that has its id goes on.

        Args:
            error: The reason.
            id: The id in the line, if it has one.
            protocols: The protocol versions that the worker speaks, if the error is about them.
        """
        with self._lock:
            taken = id in self._live or id in self._quits
            event = error_event(error, id=None if taken else id, bad_id=id if taken else None)
            event.protocols = protocols
            self._output.put_reply(encode_event(event))

    def cancel(self, id: str, target: str | None) -> None:
        """Cancel one request, or all. The `done` of the cancel precedes the terminals that it causes.

        Args:
            id: The id of the cancel.
            target: The request to cancel; None for all.

        Raises:
            RequestError: duplicate_id.
        """
        with self._lock:
            self._check_id_is_free(id)
            found = [*self._live.values()] if target is None else [*filter(None, [self._live.get(target)])]
            self._output.put_reply(encode_event(CancelDone(id=id, cmd=Cancel.name, matched=len(found))))
            self._cancel(found)

    def cancel_expired(self) -> float:
        """Cancel the requests whose deadline has passed, and return the next deadline; infinity if there is none."""
        with self._lock:
            now = self.clock()
            self._cancel([request for request in self._live.values() if request.deadline <= now], "timeout")
            return min(
                (request.deadline for request in self._live.values() if not request.cancel_reason), default=math.inf
            )

    def cancel_where(self, wanted: Callable[[Request], bool]) -> None:
        """Cancel requests without a reply: the bridge's cancel, a signal, a lost host."""
        with self._lock:
            self._cancel([request for request in self._live.values() if wanted(request)])

    def quit(self, request: Request, *, drain: bool) -> None:
        """Accept no further requests. The quit is answered when none is in flight.

        Args:
            request: The quit.
            drain: Let the requests in flight end by themselves.

        Raises:
            RequestError: duplicate_id.
        """
        with self._lock:
            self._check_id_is_free(request.id)
            self._quits[request.id] = request
            self._drain()
            if not drain:
                self._cancel(list(self._live.values()))

    def drain(self) -> None:
        """Accept no further requests: the end of stdin, a signal."""
        with self._lock:
            self._drain()

    def mark_first_line(self) -> None:
        """Let the engine start its slow imports, because the first line is answered."""
        with self._lock:
            self._has_first_line = True
            self._changed.notify_all()

    # The engine's side.

    def wait_for_first_line(self) -> None:
        """Wait for the first line, or the end."""
        with self._lock:
            self._changed.wait_for(lambda: self._has_first_line or self._is_drained())

    def wait_until_drained(self) -> None:
        """Wait until no request is in flight and none can follow."""
        with self._lock:
            self._changed.wait_for(self._is_drained)

    def take_new(self, *, block: bool, unless: Callable[[], bool] = lambda: False) -> list[Request] | None:
        """Return the requests accepted since the last call; None when the worker has drained.

        Args:
            block: Wait until there is a request or a cancel.
            unless: Returns whether something else has changed, so that the wait ends.
        """
        if not (block or self._inbox or self.draining):
            return []  # hardly ever is there a request between two steps, and the lock is slower than this check
        with self._lock:
            while not self._inbox and not self._cancelled:
                if self._is_drained():
                    return None
                if not block or unless():
                    break
                self._wait_in_state("idle")
            return self._take_inbox_locked()

    def take_new_within(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> list[Request]:
        """Return the requests accepted within some seconds; none if something else changes first.

        Args:
            seconds: How long to wait.
            unless: Returns whether something else has changed already.
        """
        with self._lock:
            if not self._inbox and not unless():
                self._changed.wait(seconds)
            return self._take_inbox_locked()

    def wait_unless(self, ready: Callable[[], bool], state: State) -> None:
        """Wait until `ready()`, a new request or a cancel: the engine's pause while the host reads.

        Args:
            ready: Returns whether the engine may go on.
            state: Reported by `ping` meanwhile.
        """
        with self._lock:
            if not (ready() or self._inbox or self._cancelled):
                self._wait_in_state(state)

    def wake(self) -> None:
        """Make a waiting engine check its state again."""
        with self._lock:
            self.activity.rouse()
            self._changed.notify_all()

    def take_cancelled(self) -> list[Request]:
        """Return the running requests cancelled since the last call. The engine drops them, and ends those left."""
        if not self._cancelled:
            return []
        with self._lock:
            cancelled, self._cancelled = self._cancelled, []
            return cancelled

    def start(self, request: Request) -> bool:
        """Mark a waiting request as running, and return False if it has ended meanwhile."""
        with self._lock:
            if request.ended:
                return False
            request.running = True
            request.started_at = self.clock()
            return True

    def requeue(self, request: Request) -> None:
        """Make a started request wait again; end it if it was cancelled meanwhile."""
        with self._lock:
            request.running = False
            request.started_at = None
            if request.cancel_reason:
                self._end(request, request.cancellation())

    def deliver(self, events: Iterable[tuple[Request, OutputEvent]]) -> None:
        """Apply a runner's events to their requests, write them, and end the requests that they complete.

        All of it happens under one lock, so that whoever else ends a request counts exactly the tokens delivered.
        """
        output = self._output
        with self._lock:
            for request, event in events:
                is_complete = request.state.apply(event)
                if not request.ended:
                    request.writer.write(output, request, event)
                    if is_complete:
                        self._end(request, request.done())

    def send_progress(self, request: Request, line: bytes) -> None:
        """Queue a progress line if its request is still in flight.

        Args:
            request: The request.
            line: The event; empty if the session has none.
        """
        with self._lock:
            if line and not request.ended:
                self._output.put_stream(line)

    def end(self, request: Request, outcome: Done | RequestError) -> None:
        """End a request, unless it has ended already.

        Args:
            request: The request.
            outcome: Its result or error.
        """
        with self._lock:
            self._end(request, outcome)

    # Any thread's.

    def end_all(self, outcome: Callable[[Request], Done | RequestError]) -> None:
        """End all requests without the engine, which may be in an evaluation, or dead."""
        with self._lock:
            self._drain()
            for request in list(self._live.values()):
                self._end(request, outcome(request))

    def close(self) -> None:
        """Queue the last lines, those of quit, and close the output."""
        with self._lock:
            for request in self._quits.values():
                self._output.put_terminal(request.id, request.writer.terminal(request, QuitDone(id=request.id)))
            self._quits.clear()
            self._output.close()

    def counts(self) -> RequestStats:
        """Return the numbers of requests since the start."""
        with self._lock:
            active, queued = self._active_and_queued()
            return RequestStats(active=active, queued=queued, **self._counts)

    def ping_reply(self, id: str) -> PingDone:
        """Return the reply to a ping: the engine's state, and the time since its last progress.

        It takes the lock that decides every terminal: once the last terminal is queued, the worker is idle.
        """
        with self._lock:
            active, queued = self._active_and_queued()
            state = self.activity.state if self._live else "idle"
            return PingDone(
                id=id,
                cmd=Ping.name,
                state="draining" if self.draining else state,
                step_age_ms=self.activity.step_age_ms() if self._live else None,
                active=active,
                queued=queued,
            )

    # With the lock held.

    def _wait_in_state(self, state: State) -> None:
        """Let the engine wait for a change, in the given state."""
        self.activity.become(state)
        self._changed.wait()
        self.activity.become("running")

    def _take_inbox_locked(self) -> list[Request]:
        arrived = list(self._inbox)
        self._inbox.clear()
        return arrived

    def _check_id_is_free(self, id: str) -> None:
        if id in self._live or id in self._quits:
            raise RequestError("duplicate_id", f"the id {id!r} is in flight; it is free again after its terminal")

    def _is_drained(self) -> bool:
        return self.draining and not self._live

    def _drain(self) -> None:
        self.draining = True
        self._changed.notify_all()

    def _cancel(self, found: list[Request], why: CancelReason = "cancelled") -> None:
        for request in found:
            if request.cancel_reason:
                continue
            request.cancel_reason = why
            if (preparation := request.preparation) is not None:
                preparation.cancel()
            if request.running or request.writer.is_serial:
                self._cancelled.append(request)
            # A chunk of a long prompt may take seconds, and its end would add nothing to the terminal.
            if not request.writer.is_serial and request.status is not Status.DECODING:
                self._end(request, request.cancellation())
        self._changed.notify_all()

    def _end(self, request: Request, outcome: Done | RequestError) -> None:
        if request.ended:
            return
        request.ended = True
        del self._live[request.id]
        request.preparation = None  # ends its work in threads and processes, whatever the engine does
        self._line_bytes -= request.line_bytes
        if isinstance(outcome, RequestError):
            self._counts["cancelled" if outcome.code == "cancelled" else "errors"] += 1
            event = error_event(outcome, id=request.id)
            event.loaded = self.model_loaded if isinstance(request.command, Load) else None
        else:
            self._counts["cancelled" if getattr(outcome, "finish_reason", "") == "cancelled" else "done"] += 1
            event = outcome
        self._output.put_terminal(request.id, request.writer.terminal(request, event))
        if self.draining:
            self._changed.notify_all()

    def _active_and_queued(self) -> tuple[int, int]:
        active = sum(request.running for request in self._live.values())
        return active, len(self._live) - active


class Activity:
    """The engine's state and the time of its last progress, for `ping`.

    The registry's lock guards every change between rest and work.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.state: State = "idle"
        self._clock = clock
        self._progress_at = clock()

    def become(self, state: State) -> None:
        """Enter a state; this counts as progress."""
        self._progress_at = self._clock()
        self.state = state

    def progressed(self) -> None:
        """Note that the engine has made progress."""
        self._progress_at = self._clock()

    def rouse(self) -> None:
        """Count an idle engine as running: it has a request, and may take a while to wake."""
        if self.state == "idle":
            self.become("running")

    def step_age_ms(self) -> float | None:
        """Return the milliseconds since the last progress; None while none is due."""
        if self.state in _RESTING:
            return None
        then = self._progress_at  # read before the clock: the engine may progress in between
        return round((self._clock() - then) * 1000, 3)
