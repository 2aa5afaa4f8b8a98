"""A worker that dies, falls silent or breaks the protocol: what it has not ended is lost, and never a success."""

from collections.abc import Callable
from signal import SIGKILL
from time import monotonic

from lmwire_protocol.limits import CLIENT_LINE_BYTES

from .. import lines
from ..failure import Failure
from ..play import Play
from ..worker import Worker
from .registry import case, variants

_STARTS = 10
_OBSERVED_S = 5.0
_LOOK_S = 0.02

_WAYS = {"exit-0": 0, "exit-70": 70, "killed": -SIGKILL}

_STAGES: dict[str, tuple[str, Callable[[str], list[lines.Event | bytes]]]] = {
    "at-once": ("", lambda id: []),
    "before-the-first-token": ("", lambda id: [lines.progress(id)]),
    "mid-stream": ("so far", lambda id: [lines.token(id, "so "), lines.token(id, "far")]),
    "mid-line": ("so far", lambda id: [lines.token(id, "so far"), lines.line(lines.token(id, "no"))[:-9]]),
    "mid-terminal": ("so far", lambda id: [lines.token(id, "so far"), lines.line(lines.result(id))[:-1]]),
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
def a_death_loses_the_request(play: Play, death: tuple[str, Callable[[str], list[lines.Event | bytes]], int]) -> None:
    """Whatever the exit code, with the text that came in whole lines."""
    text, said, status = death
    worker = play.start()
    worker.say(*said(play.request("a").id))
    worker.end(status)
    play.driver.expect_failed("a", "worker_lost", text=text)


@case("H-9", "T-3")
def a_death_loses_all_requests_in_flight(play: Play) -> None:
    """Those that wait behind a load too."""
    worker = play.start()
    requests = {name: play.request(name).id for name in ("a", "b")}
    play.request("c", "load", path="/models/played")
    play.request("d")
    worker.say(lines.token(requests["a"], "a"))
    worker.end(-SIGKILL)
    play.driver.expect_failed("a", "worker_lost", text="a")
    for name in "bcd":
        play.driver.expect_failed(name, "worker_lost")


@variants(_WAYS, "T-1", "H-9")
def a_death_after_the_terminal_takes_nothing_back(play: Play, status: int) -> None:
    """What has ended stays a success, read in the same turn as the death or not; what has not is lost."""
    worker = play.start()
    ended, open_ = play.request("a").id, play.request("b").id
    worker.say(lines.token(ended, "whole"), lines.result(ended), lines.token(open_, "half"))
    worker.end(status)
    play.driver.expect_done("a", text="whole")
    play.driver.expect_failed("b", "worker_lost", text="half")


@case("H-9")
def requests_to_a_dead_worker_are_lost(play: Play) -> None:
    """A request after the death fails, and does not wait."""
    worker = play.start()
    play.request("a")
    worker.end(70)
    play.driver.expect_failed("a", "worker_lost")
    play.ask("b")
    play.driver.expect_failed("b", "worker_lost")


@case("H-9")
def an_idle_worker_can_die(play: Play) -> None:
    """With nothing in flight nothing is reported, and the next request fails."""
    play.start().end(-SIGKILL)
    play.ask("a")
    play.driver.expect_failed("a", "worker_lost")


@case("H-9", "T-3")
def the_end_of_stdout_loses_the_requests(play: Play) -> None:
    """Even though the process lives on: the host does not wait for ever for one that has no voice."""
    worker = play.start()
    worker.say(lines.token(play.request("a").id, "so far"))
    worker.close_stdout()
    play.driver.expect_failed("a", "worker_lost", text="so far")


@variants({"child": False, "daemon": True}, "H-9", "T-3")
def the_end_of_the_process_loses_the_requests(play: Play, daemon: bool) -> None:
    """Even though a child of the worker's holds its stdout open."""
    worker = play.start()
    worker.say(lines.token(play.request("a").id, "so far"))
    worker.fork(daemon=daemon)
    play.next_worker(play.timeout)
    worker.end(-SIGKILL)
    play.driver.expect_failed("a", "worker_lost", text="so far")


_GARBAGE = {
    "text": b"WARNING: something printed this\n",
    "list": b"[]\n",
    "number": b"5\n",
    "no-utf-8": b'{"event":"token","id":"\xff"}\n',
    "half-an-object": b'{"event":"token","id":"1","token":"\n',
    "deep": b"[" * 100_000 + b"\n",
}


@variants(_GARBAGE, "H-5")
def a_line_that_is_no_object_ends_the_worker(play: Play, garbage: bytes) -> None:
    """All requests in flight are lost, with the text that came before; nothing after it is believed."""
    worker = play.start()
    streaming, waiting = play.request("a").id, play.request("b").id
    worker.say(lines.token(streaming, "so "))
    after = lines.token(streaming, "no"), lines.result(streaming), lines.result(waiting)
    _violate(worker, lines.token(streaming, "far"), garbage, *after)
    play.driver.expect_failed("a", "worker_lost", text="so far")
    play.driver.expect_failed("b", "worker_lost")


_LONG = lines.line(lines.token("1", "x" * CLIENT_LINE_BYTES))


@variants({"whole": _LONG, "without-an-end": _LONG[:-5], "spaces": b" " * (2 * CLIENT_LINE_BYTES)}, "H-5")
def a_line_over_1_mib_ends_the_worker(play: Play, long: bytes) -> None:
    """Whether or not its end has come: it may never come."""
    worker = play.start()
    worker.say(lines.token(play.request("a").id, "so far"))
    _violate(worker, long)
    play.driver.expect_failed("a", "worker_lost", text="so far")


@case("H-5")
def a_violation_is_one_with_nothing_in_flight_too(play: Play) -> None:
    """The worker is killed, and the next request fails."""
    _violate(play.start(), _GARBAGE["text"])
    play.ask("a")
    play.driver.expect_failed("a", "worker_lost")


@case("H-10")
def a_worker_that_always_dies_is_not_started_for_ever(play: Play) -> None:
    """A host that starts workers again stops, or pauses, when each dies at once. Others have nothing to do here."""
    play.spawn(restart=True).end(70)
    starts = 1
    deadline = monotonic() + _OBSERVED_S
    for name in (f"r{number}" for number in range(2 * _STARTS)):
        play.ask(name)
        while not play.driver.has_ended(name, _LOOK_S) and monotonic() < deadline:
            if worker := play.next_worker(_LOOK_S):
                worker.end(70)
                starts += 1
        if starts > _STARTS:
            raise Failure("a pause between one start and the next", f"{starts} workers, each of which died at once")


def _violate(worker: Worker, *said: lines.Event | bytes) -> None:
    """Breaks the protocol, and waits until the host has killed the worker, which survives SIGTERM."""
    worker.hold_sigterm()
    worker.say_last(*said)
    worker.expect_killed()
