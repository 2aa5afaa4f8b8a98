"""A worker that dies, falls silent or breaks the protocol: what it has not ended is lost, and never a success."""

from collections.abc import Callable
from signal import SIGKILL
from time import monotonic

from lmwire_protocol.limits import CLIENT_LINE_BYTES

from .. import wire
from ..case_failure import CaseFailure
from ..context import CaseContext
from ..played_worker import PlayedWorker
from .registry import case, variants

_STARTS = 10
_OBSERVED_S = 5.0
_LOOK_S = 0.02

_WAYS = {"exit-0": 0, "exit-70": 70, "killed": -SIGKILL}

_STAGES: dict[str, tuple[str, Callable[[str], list[wire.Event | bytes]]]] = {
    "at-once": ("", lambda id: []),
    "before-the-first-token": ("", lambda id: [wire.progress(id)]),
    "mid-stream": ("so far", lambda id: [wire.token(id, "so "), wire.token(id, "far")]),
    "mid-line": ("so far", lambda id: [wire.token(id, "so far"), wire.encode(wire.token(id, "no"))[:-9]]),
    "mid-terminal": ("so far", lambda id: [wire.token(id, "so far"), wire.encode(wire.result_done(id))[:-1]]),
}
"""What has come before a death: the text that is valid, and the lines."""


@variants(
    {
        f"{stage}-{way}": (*lines_and_text, status)
        for stage, lines_and_text in _STAGES.items()
        for way, status in _WAYS.items()
    },
    "T-3",
    "H-9",
    "H-6",
)
def a_death_loses_the_request(
    context: CaseContext, death: tuple[str, Callable[[str], list[wire.Event | bytes]], int]
) -> None:
    """Whatever the exit code, with the text that came in whole lines."""
    text, said, status = death
    worker = context.start()
    worker.write(*said(context.request("a").id))
    worker.end(status)
    context.driver.expect_failed("a", "worker_lost", text=text)


@case("H-9", "T-3")
def a_death_loses_all_requests_in_flight(context: CaseContext) -> None:
    """Those that wait behind a load too."""
    worker = context.start()
    requests = {name: context.request(name).id for name in ("a", "b")}
    context.request("c", "load", path="/models/played")
    context.request("d")
    worker.write(wire.token(requests["a"], "a"))
    worker.end(-SIGKILL)
    context.driver.expect_failed("a", "worker_lost", text="a")
    for name in "bcd":
        context.driver.expect_failed(name, "worker_lost")


@variants(_WAYS, "T-1", "H-9")
def a_death_after_the_terminal_takes_nothing_back(context: CaseContext, status: int) -> None:
    """What has ended stays a success, read in the same turn as the death or not; what has not is lost."""
    worker = context.start()
    ended, open_ = context.request("a").id, context.request("b").id
    worker.write(wire.token(ended, "whole"), wire.result_done(ended), wire.token(open_, "half"))
    worker.end(status)
    context.driver.expect_done("a", text="whole")
    context.driver.expect_failed("b", "worker_lost", text="half")


@case("H-9")
def requests_to_a_dead_worker_are_lost(context: CaseContext) -> None:
    """A request after the death fails, and does not wait."""
    worker = context.start()
    context.request("a")
    worker.end(70)
    context.driver.expect_failed("a", "worker_lost")
    context.ask("b")
    context.driver.expect_failed("b", "worker_lost")


@case("H-9")
def an_idle_worker_can_die(context: CaseContext) -> None:
    """With nothing in flight nothing is reported, and the next request fails."""
    context.start().end(-SIGKILL)
    context.ask("a")
    context.driver.expect_failed("a", "worker_lost")


@case("H-9", "T-3")
def the_end_of_stdout_loses_the_requests(context: CaseContext) -> None:
    """Even though the process lives on: the host does not wait for ever for one that has no voice."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    worker.close_stdout()
    context.driver.expect_failed("a", "worker_lost", text="so far")


@variants({"child": False, "daemon": True}, "H-9", "T-3")
def the_end_of_the_process_loses_the_requests(context: CaseContext, daemon: bool) -> None:
    """Even though a child of the worker's holds its stdout open."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    worker.fork(daemon=daemon)
    context.next_worker(context.timeout)
    worker.end(-SIGKILL)
    context.driver.expect_failed("a", "worker_lost", text="so far")


_GARBAGE = {
    "text": b"WARNING: something printed this\n",
    "list": b"[]\n",
    "number": b"5\n",
    "no-utf-8": b'{"event":"token","id":"\xff"}\n',
    "half-an-object": b'{"event":"token","id":"1","token":"\n',
    "deep": b"[" * 100_000 + b"\n",
}


@variants(_GARBAGE, "H-5")
def a_line_that_is_no_object_ends_the_worker(context: CaseContext, garbage: bytes) -> None:
    """All requests in flight are lost, with the text that came before; nothing after it is believed."""
    worker = context.start()
    streaming, waiting = context.request("a").id, context.request("b").id
    worker.write(wire.token(streaming, "so "))
    after = wire.token(streaming, "no"), wire.result_done(streaming), wire.result_done(waiting)
    _violate(worker, wire.token(streaming, "far"), garbage, *after)
    context.driver.expect_failed("a", "worker_lost", text="so far")
    context.driver.expect_failed("b", "worker_lost")


_LONG = wire.encode(wire.token("1", "x" * CLIENT_LINE_BYTES))


@variants({"whole": _LONG, "without-an-end": _LONG[:-5], "spaces": b" " * (2 * CLIENT_LINE_BYTES)}, "H-5")
def a_line_over_1_mib_ends_the_worker(context: CaseContext, long: bytes) -> None:
    """Whether or not its end has come: it may never come."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    _violate(worker, long)
    context.driver.expect_failed("a", "worker_lost", text="so far")


@case("H-5")
def a_violation_is_one_with_nothing_in_flight_too(context: CaseContext) -> None:
    """The worker is killed, and the next request fails."""
    _violate(context.start(), _GARBAGE["text"])
    context.ask("a")
    context.driver.expect_failed("a", "worker_lost")


@case("H-10")
def a_worker_that_always_dies_is_not_started_for_ever(context: CaseContext) -> None:
    """A host that starts workers again stops, or pauses, when each dies at once. Others have nothing to do here."""
    context.spawn(restart=True).end(70)
    starts = 1
    deadline = monotonic() + _OBSERVED_S
    for name in (f"r{number}" for number in range(2 * _STARTS)):
        context.ask(name)
        while not context.driver.has_ended(name, _LOOK_S) and monotonic() < deadline:
            if worker := context.next_worker(_LOOK_S):
                worker.end(70)
                starts += 1
        if starts > _STARTS:
            raise CaseFailure("a pause between one start and the next", f"{starts} workers, each of which died at once")


def _violate(worker: PlayedWorker, *said: wire.Event | bytes) -> None:
    """Breaks the protocol, and waits until the host has killed the worker, which survives SIGTERM."""
    worker.block_sigterm()
    worker.write_last(*said)
    worker.expect_killed()
