"""Every id in flight, under one lock that decides every ending.

Whoever takes an id out of the registry owns its terminal, and the terminal is queued before the lock is let go. So a
cancel, a timeout, a quit, a dead engine and a request's own end may race: exactly one of them writes the last line,
and nothing of that request comes after it.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from lmwire_protocol import Load, RequestError, encode_event, error_event, limits
from lmwire_protocol.events import CancelDone, Done, PingDone, QuitDone, RequestStats, State

from ..engine.activity import Activity
from .event_writer import OutputEvent
from .output_queue import OutputQueue
from .request_state import CancelReason, Request


class RequestRegistry:
    """The ids in flight, the way into the engine, and how far the process is on its way out.

    Args:
        outbox: where terminals go.
    """

    def __init__(self, outbox: OutputQueue) -> None:
        self._output = outbox
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # for the engine, and for who waits for the end
        self._live: dict[str, Request] = {}
        self._quits: dict[str, Request] = {}
        self._inbox: deque[Request] = deque()
        self._cancelled: list[Request] = []
        self._line_bytes = 0
        self._counts = dict.fromkeys(("accepted", "done", "errors", "cancelled"), 0)
        self._has_first_line = False
        self.activity = Activity()
        """Kept by the engine, reported by every `ping`."""
        self.draining = False
        self.model_loaded = False
        """Kept by the engine, told by every failed load."""

    # The reader's side.

    def accept(self, request: Request) -> None:
        """Registers a request and hands it to the engine.

        Raises:
            RequestError: duplicate_id, busy or draining; nothing was registered.
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
        """Answers a command that the reader serves itself.

        Raises:
            RequestError: duplicate_id.
        """
        with self._lock:
            self._check_id_is_free(id)
            self._output.put_reply(line)

    def refuse(self, error: RequestError, id: str | None, protocols: list[int] | None = None) -> None:
        """Answers a line that is no request. An id that is in flight is named and not ended."""
        with self._lock:
            taken = id in self._live or id in self._quits
            event = error_event(error, id=None if taken else id, bad_id=id if taken else None)
            event.protocols = protocols
            self._output.put_reply(encode_event(event))

    def cancel(self, id: str, target: str | None) -> None:
        """Cancels one request, or all for None. Its own `done` goes before the ends that it causes.

        Raises:
            RequestError: duplicate_id.
        """
        with self._lock:
            self._check_id_is_free(id)
            found = [request for request in self._live.values() if target is None or request.id == target]
            self._output.put_reply(encode_event(CancelDone(id=id, matched=len(found))))
            self._cancel(found)

    def cancel_expired(self) -> float:
        """Ends the generations whose time is over; returns when the next one's will be, infinity for none."""
        with self._lock:
            now = time.monotonic()
            self._cancel([request for request in self._live.values() if request.deadline <= now], "timeout")
            return min(
                (request.deadline for request in self._live.values() if not request.cancel_reason), default=math.inf
            )

    def cancel_where(self, wanted: Callable[[Request], bool]) -> None:
        """Cancels without an answer: the bridge's cancel, a signal, a host that is gone."""
        with self._lock:
            self._cancel([request for request in self._live.values() if wanted(request)])

    def quit(self, request: Request, *, drain: bool) -> None:
        """Takes no further requests; ends the present ones unless they may drain. Answered when all is done.

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
        """Takes no further requests: the end of stdin, a signal."""
        with self._lock:
            self._drain()

    def mark_first_line(self) -> None:
        """The first line has been answered: the engine may begin with what is slow."""
        with self._lock:
            self._has_first_line = True
            self._changed.notify_all()

    # The engine's side.

    def wait_for_first_line(self) -> None:
        """Waits for the first line, or the end."""
        with self._lock:
            self._changed.wait_for(lambda: self._has_first_line or self._is_drained())

    def wait_until_drained(self) -> None:
        """Waits until no request is in flight and none will come."""
        with self._lock:
            self._changed.wait_for(self._is_drained)

    def take_new(self, *, block: bool) -> list[Request] | None:
        """What has come in since the last call; waits for something when told to. None when all is done for good."""
        if not (block or self._inbox or self.draining):
            return []  # between two steps there is hardly ever anything, and the lock costs more than to look
        with self._lock:
            while not self._inbox and not self._cancelled:
                if self._is_drained():
                    return None
                if not block:
                    break
                self._wait_in_state("idle")
            return self._take_inbox_locked()

    def take_new_within(self, seconds: float, unless: Callable[[], bool] = lambda: False) -> list[Request]:
        """Return what comes in within some seconds, or nothing when other news comes first.

        Args:
            seconds: How long to wait.
            unless: Return whether there is other news already.
        """
        with self._lock:
            if not self._inbox and not unless():
                self._changed.wait(seconds)
            return self._take_inbox_locked()

    def wait_unless(self, ready: Callable[[], bool], state: State) -> None:
        """Waits until `ready()` or until there is something to collect: the engine's pause while the host reads.

        Args:
            ready: whether there is nothing to wait for.
            state: what `ping` reports meanwhile.
        """
        with self._lock:
            if not (ready() or self._inbox or self._cancelled):
                self._wait_in_state(state)

    def wake(self) -> None:
        """Makes a waiting engine look again."""
        with self._lock:
            self.activity.rouse()
            self._changed.notify_all()

    def take_cancelled(self) -> list[Request]:
        """The running requests that were cancelled since the last call; the engine ends them."""
        if not self._cancelled:
            return []
        with self._lock:
            cancelled, self._cancelled = self._cancelled, []
            return cancelled

    def is_in_flight(self, request: Request) -> bool:
        """Whether a request is still in flight."""
        return self._live.get(request.id) is request

    def start(self, request: Request) -> bool:
        """Marks a waiting request as the engine's. False when it has ended meanwhile."""
        with self._lock:
            if self._live.get(request.id) is not request:
                return False
            request.running = True
            request.started_at = time.monotonic()
            return True

    def requeue(self, request: Request) -> None:
        """Makes a request that was started wait again; one that was cancelled meanwhile ends."""
        with self._lock:
            request.running = False
            request.started_at = None
            if request.cancel_reason:
                self._end(request, request.cancellation())

    def deliver(self, events: Iterable[tuple[Request, OutputEvent]]) -> None:
        """Apply a runner's events to their requests, write them, and end the requests that they complete.

        All of it happens under one lock, so that whoever else ends a request counts exactly the tokens delivered.
        """
        live, output = self._live, self._output
        with self._lock:
            for request, event in events:
                is_complete = request.state.apply(event)
                if live.get(request.id) is request:
                    request.writer.write(output, request, event)
                    if is_complete:
                        self._end(request, request.done())

    def send_progress(self, request: Request, line: bytes) -> None:
        """Sends a progress line of a request that is still in flight."""
        with self._lock:
            if line and self._live.get(request.id) is request:
                self._output.put_stream(line)

    def end(self, request: Request, outcome: Done | RequestError) -> None:
        """Ends a request, unless it has ended already."""
        with self._lock:
            self._end(request, outcome)

    # Everyone's.

    def end_all(self, outcome: Callable[[Request], Done | RequestError]) -> None:
        """Ends whatever is left without the engine, which may be inside an evaluation, or dead."""
        with self._lock:
            self._drain()
            for request in list(self._live.values()):
                self._end(request, outcome(request))

    def close(self) -> None:
        """Writes the last lines, those of quit. Nothing is written after them."""
        with self._lock:
            for request in self._quits.values():
                self._output.put_terminal(request.id, request.writer.terminal(request, QuitDone(id=request.id)))
            self._quits.clear()
            self._output.close()

    def counts(self) -> RequestStats:
        """Requests since the start."""
        with self._lock:
            active, queued = self._active_and_queued()
            return RequestStats(active=active, queued=queued, **self._counts)

    def ping_reply(self, id: str) -> PingDone:
        """Report what the engine does, and how long ago it last made progress.

        Under the lock that decides every end: once the last terminal is queued, the worker is idle.
        """
        with self._lock:
            active, queued = self._active_and_queued()
            state = self.activity.state if self._live else "idle"
            return PingDone(
                id=id,
                state="draining" if self.draining else state,
                step_age_ms=self.activity.step_age_ms() if self._live else None,
                active=active,
                queued=queued,
            )

    # With the lock held.

    def _wait_in_state(self, state: State) -> None:
        """Lets the engine wait for news."""
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
            if request.running or request.writer.is_serial:
                self._cancelled.append(request)
            else:
                self._end(request, request.cancellation())
        self._changed.notify_all()

    def _end(self, request: Request, outcome: Done | RequestError) -> None:
        if self._live.get(request.id) is not request:
            return
        del self._live[request.id]
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
