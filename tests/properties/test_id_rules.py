"""Registry, session and scheduler keep the rules of ids, order and terminals, in any order of events."""

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lmwire_worker.session.request_state import Request
from support.process.worker_process import TERMINALS, Event
from support.runners.stepped_engine import SteppedWorker

IDS = st.sampled_from("abcdef")
REQUESTS = st.sampled_from(["generate", "generate", "generate", "info", "load", "unload"])
BARRIERS = ("load", "unload")
NOBODY = "nobody"
ENGINE = ("idle", "step", "load", "paused")
"""States of an engine that is still running."""

TURNS_TO_THE_END = 200

LIVELY = 8
"""Minimum number of requests before the session may end, since most situations need some."""


@dataclass
class Mine:
    """A request in flight from the host's view."""

    number: int
    id: str
    command: str
    started: bool = False
    cancelled: bool = False
    tokens: int = 0


class AnyOrder(RuleBasedStateMachine):
    """A host, an engine and a clock that act at any time. `in_flight` is the state that the rules require."""

    def __init__(self) -> None:
        super().__init__()
        self.in_flight: dict[str, Mine] = {}
        self.quits: list[str] = []
        self.draining = False
        self.accepted = 0
        self.ended = dict.fromkeys(("done", "errors", "cancelled"), 0)
        self.last_generation = -1
        self.worker = SteppedWorker(self.note_start)

    @initialize()
    def load(self) -> None:
        self.request("a", "load")
        self.go_on("none")
        self.go_on("done")
        self.go_on("none")

    # The host.

    @rule(id=IDS, command=REQUESTS)
    def request(self, id: str, command: str) -> None:
        fields = {"generate": {"prompt": str(self.accepted)}, "load": {"path": str(self.accepted)}}
        events = self.send({"id": id, "cmd": command, **fields.get(command, {})})
        if self.taken(id):
            self.check_refusal(events, "duplicate_id", bad_id=id)
        elif self.draining:
            self.check_refusal(events, "draining", id=id)
        else:
            assert events == []
            self.in_flight[id] = Mine(self.accepted, id, command)
            self.accepted += 1

    @rule(id=IDS, command=st.sampled_from(["hello", "ping", "stats"]))
    def ask(self, id: str, command: str) -> None:
        events = self.send({"id": id, "cmd": command})
        if self.taken(id):
            self.check_refusal(events, "duplicate_id", bad_id=id)
            return
        (done,) = events
        assert (done["event"], done["id"]) == ("done", id)
        counts = {"active": self.running(), "queued": len(self.in_flight) - self.running()}
        if command == "ping":
            doing = {"idle": "running", "step": "running", "load": "loading"}.get(
                self.worker.engine, self.worker.engine
            )
            doing = doing if self.in_flight else "idle"
            assert done.items() >= counts.items()
            assert done["state"] == ("draining" if self.draining else doing)
            assert ("step_age_ms" in done) == (doing in ("running", "loading"))
        elif command == "stats":
            assert done["requests"] == {"accepted": self.accepted, **counts, **self.ended}

    @rule(id=IDS, wrong=st.sampled_from([{"cmd": "sing"}, {"cmd": "ping", "pong": 1}, {"cmd": "load"}, {"cmd": 5}]))
    def request_wrongly(self, id: str, wrong: dict[str, Any]) -> None:
        code = "unknown_command" if wrong["cmd"] == "sing" else "invalid_request"
        named = {"bad_id": id} if self.taken(id) else {"id": id}
        self.check_refusal(self.send({"id": id, **wrong}), code, **named)

    @rule(id=IDS, whom=IDS | st.just(NOBODY) | st.none())
    def cancel(self, id: str, whom: str | None) -> None:
        events = self.send({"id": id, "cmd": "cancel", **({"all": True} if whom is None else {"target": whom})})
        if self.taken(id):
            self.check_refusal(events, "duplicate_id", bad_id=id)
            return
        found = [mine for mine in self.in_flight.values() if whom in (None, mine.id)]
        assert events.pop(0) == {"event": "done", "id": id, "cmd": "cancel", "matched": len(found)}
        self.check_cancelled(found, events)

    @precondition(lambda self: self.accepted >= LIVELY)
    @rule(id=IDS, drain=st.booleans())
    def quit(self, id: str, drain: bool) -> None:
        events = self.send({"id": id, "cmd": "quit", "drain": drain})
        if self.taken(id):
            self.check_refusal(events, "duplicate_id", bad_id=id)
            return
        self.quits.append(id)
        self.draining = True
        self.check_cancelled([] if drain else list(self.in_flight.values()), events)

    @rule()
    def stop_reading(self) -> None:
        self.worker.events.host_reads = False

    @rule()
    def read_again(self) -> None:
        self.worker.events.host_reads = True

    # Signals, the clock and the engine.

    @precondition(lambda self: self.accepted >= LIVELY)
    @rule()
    def terminate(self) -> None:
        self.worker.registry.drain()
        self.worker.registry.cancel_where(lambda request: True)
        self.draining = True
        self.check_cancelled(list(self.in_flight.values()), self.worker.events.take())

    @precondition(lambda self: self.accepted >= LIVELY)
    @rule()
    def run_out_of_time(self) -> None:
        self.worker.registry.end_all(Request.cancellation)
        self.draining = True
        for mine in self.in_flight.values():
            mine.cancelled = True
        self.note(self.worker.events.take())
        assert self.in_flight == {}

    @precondition(lambda self: self.worker.engine in ENGINE)
    @rule(order=st.sampled_from(["none", "none", "first", "last", "all", "fail", "report", "replace", "done"]))
    def go_on(self, order: str) -> None:
        self.worker.order(order)
        self.note(self.worker.events.take())
        engine = self.worker.engine
        assert engine in (*ENGINE, "over")
        undone = [mine for mine in self.in_flight.values() if mine.started and mine.cancelled]
        assert all(mine.command == "load" for mine in undone), "a generation ends after the step that is running"
        assert not (undone and order == "report"), "a load ends where it reports"
        if engine in ("idle", "over"):
            assert self.in_flight == {}, "the engine has forgotten a request"
        assert (engine == "over") <= self.draining

    def teardown(self) -> None:
        """Close stdin, let the engine finish, and check that nothing remains and that quit is answered last."""
        self.worker.events.host_reads = True
        self.worker.registry.drain()
        self.draining = True
        for _ in range(TURNS_TO_THE_END):
            if self.worker.engine in ENGINE:
                self.go_on("all")
        assert self.worker.engine == "over"
        self.worker.registry.close()
        assert self.worker.events.take() == [{"event": "done", "id": id, "cmd": "quit"} for id in self.quits]

    # Checks.

    def send(self, command: Event) -> list[Event]:
        self.worker.session.serve(command, 10)
        return self.worker.events.take()

    def taken(self, id: str) -> bool:
        return id in self.in_flight or id in self.quits

    def running(self) -> int:
        return sum(mine.started for mine in self.in_flight.values())

    def check_refusal(self, events: list[Event], code: str, **named: str) -> None:
        (error,) = events
        assert (error["event"], error["code"]) == ("error", code)
        assert {name: error[name] for name in ("id", "bad_id") if name in error} == named

    def check_cancelled(self, found: list[Mine], events: list[Event]) -> None:
        """Check that requests without an answer end at once, in order. Others end in the engine's next turn."""
        for mine in found:
            mine.cancelled = True
        prompts = [mine for mine in found if mine.command == "generate" and not mine.tokens]
        assert [event["id"] for event in events] == [mine.id for mine in found if not mine.started or mine in prompts]
        self.note(events)

    def note_start(self, number: str) -> None:
        """Record that the engine has started a generation or a load, and check that it was its turn."""
        self.note(self.worker.events.take())
        (mine,) = [mine for mine in self.in_flight.values() if mine.number == int(number)]
        self.check_turn(mine)
        mine.started = True
        if mine.command == "generate":
            assert mine.number > self.last_generation, "generations start in the order of their lines"
            self.last_generation = mine.number

    def check_turn(self, mine: Mine) -> None:
        earlier = [other for other in self.in_flight.values() if other.number < mine.number]
        assert not any(other.command in BARRIERS for other in earlier), "it waits for an earlier barrier"
        assert not (earlier and mine.command in BARRIERS), "a barrier waits for all that came earlier"

    def note(self, events: list[Event]) -> None:
        for event in events:
            mine = self.in_flight[event["id"]]
            if event["event"] == "token":
                assert mine.started
                mine.tokens += len(event["token_ids"])
            elif event["event"] in TERMINALS:
                self.check_end(mine, event)
                del self.in_flight[mine.id]

    def check_end(self, mine: Mine, event: Event) -> None:
        was_cancelled = "cancelled" in (event.get("finish_reason"), event.get("code"))
        assert was_cancelled <= mine.cancelled
        if was_cancelled:
            assert (event["event"] == "done") == (mine.command == "generate")
        else:
            self.check_turn(mine)
        if "usage" in event:
            assert event["usage"]["completion_tokens"] == mine.tokens
        assert ("loaded" in event) == (mine.command == "load" and event["event"] == "error")
        self.ended["cancelled" if was_cancelled else "done" if event["event"] == "done" else "errors"] += 1


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(stateful_step_count=50)
