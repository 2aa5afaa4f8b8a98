"""Workers with faults in ids or in the order of events."""

from typing import Any

from lmwire_protocol import Command, commands, encoding, events, limits
from lmwire_worker.scheduling.scheduler import FairQueue, Scheduler
from lmwire_worker.session import v1
from lmwire_worker.session.request_registry import RequestRegistry
from lmwire_worker.session.v1 import Session
from support.protocol.mutation import mutant, replace, wrap


@mutant("I-3", "i-3-duplicate")
def serves_an_id_that_is_in_flight() -> None:
    replace(RequestRegistry, "_check_id_is_free", lambda self, id: None)


@mutant("I-4", "i-1-ids")
def counts_an_ids_characters() -> None:
    replace(v1, "usable_id", lambda value: isinstance(value, str) and 0 < len(value) <= limits.ID_BYTES)


@mutant("I-5", "i-5-unreadable")
def recovers_no_id() -> None:
    replace(v1, "recover_id", lambda line: None)


@mutant("S-2", "s-1-version-1")
def makes_up_an_id() -> None:
    wrap(Session, "serve", lambda serve, self, fields, size: serve(self, {"id": "made up", **fields}, size))


@mutant("O-2", "c-2-same-write")
def answers_a_cancel_after_its_terminals() -> None:
    def cancel(self: RequestRegistry, id: str, target: str | None) -> None:
        with self._lock:
            found = [request for request in self._live.values() if target is None or request.id == target]
            for request in found:
                self._end(request, request.cancellation())
            self._output.put_reply(encoding.encode_event(events.CancelDone(id=id, matched=len(found))))

    replace(RequestRegistry, "cancel", cancel)


@mutant("O-2", "o-2-quits-last")
def answers_quit_at_once() -> None:
    def quit_at_once(self: RequestRegistry, request: Any, *, drain: bool) -> None:
        self._output.put_reply(encoding.encode_event(events.QuitDone(id=request.id)))
        self.drain()

    replace(RequestRegistry, "quit", quit_at_once)


@mutant("C-1", "c-1-nothing-to-cancel")
def finds_what_is_not_there() -> None:
    def answer(dispatch: Any, self: Session, id: str, command: Command, size: int) -> None:
        if isinstance(command, commands.Cancel):
            self._registry.reply(id, encoding.encode_event(events.CancelDone(id=id, matched=1)))
        else:
            dispatch(self, id, command, size)

    wrap(Session, "_dispatch", answer)


@mutant("C-2", "c-2-same-write")
def cancels_nothing() -> None:
    def cancel(self: RequestRegistry, id: str, target: str | None) -> None:
        self.reply(id, encoding.encode_event(events.CancelDone(id=id, matched=0)))

    replace(RequestRegistry, "cancel", cancel)


@mutant("L-2", "l-2-barriers")
def lets_later_requests_pass_a_barrier() -> None:
    def start_waiting(start: Any, self: Scheduler) -> None:
        in_order = sorted(self._waiting, key=lambda request: request.command.barrier)
        self._waiting.clear()
        self._waiting.extend(in_order)
        start(self)

    wrap(Scheduler, "_start_waiting", start_waiting)


@mutant("N-10", "n-10-turns")
def starts_all_in_the_order_of_their_lines() -> None:
    replace(FairQueue, "enqueue", lambda self, requests: self.extend(requests))
