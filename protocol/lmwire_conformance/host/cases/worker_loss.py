"""A worker that dies, closes stdout or breaks the protocol: its requests without a terminal are lost."""

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
_POLL_S = 0.02

_DEATHS = {"exit-0": 0, "exit-70": 70, "killed": -SIGKILL}

_STAGES: dict[str, tuple[str, Callable[[str], list[wire.Event | bytes]]]] = {
    "at-once": ("", lambda id: []),
    "before-the-first-token": ("", lambda id: [wire.progress(id)]),
    "mid-stream": ("so far", lambda id: [wire.token(id, "so "), wire.token(id, "far")]),
    "mid-line": ("so far", lambda id: [wire.token(id, "so far"), wire.encode(wire.token(id, "no"))[:-9]]),
    "mid-terminal": ("so far", lambda id: [wire.token(id, "so far"), wire.encode(wire.result_done(id))[:-1]]),
}
"""The valid text before a death, and the lines that the worker writes."""


@variants(
    {
        f"{stage}-{way}": (*lines_and_text, status)
        for stage, lines_and_text in _STAGES.items()
        for way, status in _DEATHS.items()
    },
    "T-3",
    "H-9",
    "H-6",
)
def loses_a_request_when_the_worker_dies(
    context: CaseContext, death: tuple[str, Callable[[str], list[wire.Event | bytes]], int]
) -> None:
    """Report the request as lost, whatever the exit code, and pass on the text of whole lines."""
    text, said, status = death
    worker = context.start()
    worker.write(*said(context.request("a").id))
    worker.end(status)
    context.driver.expect_failed("a", "worker_lost", text=text)


@case("H-9", "T-3")
def loses_all_requests_in_flight(context: CaseContext) -> None:
    """Report all requests in flight as lost, even those that wait for a load."""
    worker = context.start()
    requests = {name: context.request(name).id for name in ("a", "b")}
    context.request("c", "load", path="/models/played")
    context.request("d")
    worker.write(wire.token(requests["a"], "a"))
    worker.end(-SIGKILL)
    context.driver.expect_failed("a", "worker_lost", text="a")
    for name in "bcd":
        context.driver.expect_failed(name, "worker_lost")


@variants(_DEATHS, "T-1", "H-9")
def keeps_a_terminal_that_came_before_the_death(context: CaseContext, status: int) -> None:
    """Report a request that has ended as a success, although the worker dies right afterwards."""
    worker = context.start()
    ended, open_ = context.request("a").id, context.request("b").id
    worker.write(wire.token(ended, "whole"), wire.result_done(ended), wire.token(open_, "half"))
    worker.end(status)
    context.driver.expect_done("a", text="whole")
    context.driver.expect_failed("b", "worker_lost", text="half")


@case("H-9")
def fails_requests_to_a_dead_worker(context: CaseContext) -> None:
    """Fail a request that comes after the death, without waiting."""
    worker = context.start()
    context.request("a")
    worker.end(70)
    context.driver.expect_failed("a", "worker_lost")
    context.ask("b")
    context.driver.expect_failed("b", "worker_lost")


@case("H-9")
def notices_the_death_of_an_idle_worker(context: CaseContext) -> None:
    """Report nothing when an idle worker dies, and fail the next request."""
    context.start().end(-SIGKILL)
    context.ask("a")
    context.driver.expect_failed("a", "worker_lost")


@case("H-9", "T-3")
def loses_requests_at_the_end_of_stdout(context: CaseContext) -> None:
    """Report requests as lost when stdout ends, although the process lives on, and kill it in the end."""
    worker = context.start()
    worker.block_sigterm()
    worker.write(wire.token(context.request("a").id, "so far"))
    worker.close_stdout()
    context.driver.expect_failed("a", "worker_lost", text="so far")
    worker.expect_killed()


@case("H-9", "T-1")
def reads_the_rest_of_the_pipe_after_the_exit(context: CaseContext) -> None:
    """Read what is still in the pipe, although the exit of the process is known already."""
    worker = context.start()
    id = context.request("a").id
    text = "x" * 1000
    with context.driver.stopped():
        worker.write(*[wire.token(id, text)] * 50, wire.result_done(id))
        worker.end(0)
    context.driver.expect_done("a", text=text * 50)


@case("H-3", "H-9")
def reads_on_after_a_failed_write(context: CaseContext) -> None:
    """Survive a write to a worker that no longer reads, and pass on what still comes from it."""
    worker = context.start()
    id = context.request("a").id
    worker.close_stdin()
    context.ask("b")
    worker.write(wire.token(id, "whole"), wire.result_done(id))
    context.driver.expect_done("a", text="whole")
    worker.end(0)
    context.driver.expect_failed("b", "worker_lost")


@variants({"child": False, "daemon": True}, "H-9", "T-3")
def loses_requests_at_the_end_of_the_process(context: CaseContext, daemon: bool) -> None:
    """Report requests as lost, although a child of the worker holds stdout open, and kill a child in its group."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    child = context.fork(worker, daemon=daemon)
    worker.end(-SIGKILL)
    context.driver.expect_failed("a", "worker_lost", text="so far")
    if not daemon:
        child.expect_killed()


_GARBAGE = {
    "text": b"WARNING: something printed this\n",
    "list": b"[]\n",
    "number": b"5\n",
    "no-utf-8": b'{"event":"token","id":"\xff"}\n',
    "half-an-object": b'{"event":"token","id":"1","token":"\n',
    "deep": b"[" * 100_000 + b"\n",
}


@variants(_GARBAGE, "H-5")
def kills_the_worker_after_a_line_that_is_not_an_object(context: CaseContext, garbage: bytes) -> None:
    """Report all requests as lost, pass on the text before the line, and ignore all that follows."""
    worker = context.start()
    streaming, waiting = context.request("a").id, context.request("b").id
    worker.write(wire.token(streaming, "so "))
    after = wire.token(streaming, "no"), wire.result_done(streaming), wire.result_done(waiting)
    _violate(worker, wire.token(streaming, "far"), garbage, *after)
    context.driver.expect_failed("a", "worker_lost", text="so far")
    context.driver.expect_failed("b", "worker_lost")


_LONG = wire.encode(wire.token("1", "x" * CLIENT_LINE_BYTES))


@variants({"whole": _LONG, "without-an-end": _LONG[:-5], "spaces": b" " * (2 * CLIENT_LINE_BYTES)}, "H-5")
def kills_the_worker_after_a_line_over_1_mib(context: CaseContext, long: bytes) -> None:
    """Kill the worker even before the end of the line, which may never come."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    _violate(worker, long)
    context.driver.expect_failed("a", "worker_lost", text="so far")


_COMPLETE: dict[str, Callable[[str], wire.Event]] = {
    "token": lambda id: wire.token(id, "no"),
    "tool-call": lambda id: wire.tool_call(id, call_id="c1", name="news", arguments="{}"),
    "done": wire.result_done,
    "error": lambda id: wire.error(id, "engine_error"),
}
_REQUIRED = {
    "token": ("token", "token_ids"),
    "tool-call": ("index",),
    "done": ("finish_reason", "seed", "usage", "timings"),
    "error": ("error", "code", "retryable"),
}


@variants(
    {
        f"{event}-without-{field.replace('_', '-')}": (_COMPLETE[event], field)
        for event, fields in _REQUIRED.items()
        for field in fields
    },
    "H-5",
)
def kills_the_worker_after_an_incomplete_event(
    context: CaseContext, incomplete: tuple[Callable[[str], wire.Event], str]
) -> None:
    """Report all requests as lost after an event that lacks a field which is always present."""
    complete, field = incomplete
    worker = context.start()
    damaged, other = context.request_chat("a").id, context.request("b").id
    event = complete(damaged)
    del event[field]
    _violate(worker, wire.token(damaged, "so far"), event, wire.result_done(damaged), wire.result_done(other))
    context.driver.expect_failed("a", "worker_lost", text="so far")
    context.driver.expect_failed("b", "worker_lost")


@case("H-5")
def kills_an_idle_worker_after_a_violation(context: CaseContext) -> None:
    """Kill a worker that breaks the protocol while no request is in flight, and fail the next request."""
    _violate(context.start(), _GARBAGE["text"])
    context.ask("a")
    context.driver.expect_failed("a", "worker_lost")


@case("H-10")
def pauses_between_starts_of_a_worker_that_always_dies(context: CaseContext) -> None:
    """Stop or pause when each new worker dies at once, and fail requests meanwhile. Hosts that restart none pass."""
    context.spawn(restart=True).end(70)
    starts = 1
    deadline = monotonic() + _OBSERVED_S
    asked = [f"r{number}" for number in range(2 * _STARTS)]
    for name in asked:
        context.ask(name)
        while not context.driver.has_ended(name, _POLL_S) and monotonic() < deadline:
            if worker := context.next_worker(_POLL_S):
                worker.end(70)
                starts += 1
        if starts > _STARTS:
            raise CaseFailure("a pause between two starts", f"{starts} workers, each of which died at once")
    deadline = monotonic() + context.timeout
    for name in asked:
        while not context.driver.has_ended(name, _POLL_S):
            if worker := context.next_worker(_POLL_S):
                worker.end(70)
            elif monotonic() > deadline:
                raise CaseFailure("requests that fail during a pause", f"{name!r} waits")


def _violate(worker: PlayedWorker, *said: wire.Event | bytes) -> None:
    """Break the protocol, and wait until the host has killed the worker, which survives SIGTERM."""
    worker.block_sigterm()
    worker.write_last(*said)
    worker.expect_killed()
