"""The way down: `quit`, the end of stdin, SIGTERM, SIGKILL, each after a bounded wait, and reading all the while."""

from signal import SIGKILL

from .. import lines
from ..failure import Failure
from ..play import Play
from ..worker import Worker
from .registry import case, variants


@case("H-7", "E-1")
def a_worker_is_asked_to_quit(play: Play) -> None:
    """The first step, and the only one for a worker that does what it is asked."""
    worker = play.start()
    worker.hold_sigterm()
    play.driver.do(do="close")
    quit = worker.expect("quit")
    if worker.sigterm_came():
        raise Failure("`quit` and a wait", "SIGTERM at the same time")
    worker.say(lines.bare(quit.id))
    worker.end(0)
    play.expect_closed()


@case("H-7", "E-1", "O-2")
def what_runs_ends_with_its_terminals(play: Play) -> None:
    """A request that quitting cancels is ended by the worker, and told as that."""
    worker = play.start()
    id = play.request("a").id
    worker.say(lines.token(id, "so far"))
    play.driver.do(do="close")
    quit = worker.expect("quit")
    worker.say(lines.token(id, "."), lines.result(id, "cancelled"), lines.bare(quit.id))
    worker.end(0)
    play.driver.expect_done("a", text="so far.", finish_reason="cancelled")
    play.expect_closed()


@case("H-2", "H-7", "E-3")
def both_pipes_are_read_while_closing(play: Play) -> None:
    """A worker that still has much to write, on stdout and stderr, can write it and exit."""
    worker = play.start()
    id = play.request("a").id
    play.driver.do(do="close")
    quit = worker.expect("quit")
    worker.flood_stderr()
    worker.say(*[lines.token(id, "x" * 1000)] * 500, lines.result(id, "cancelled"), lines.bare(quit.id))
    worker.end(0)
    play.driver.expect_done("a", text="x" * 500_000, finish_reason="cancelled")
    play.expect_closed()


@case("H-7")
def stdin_is_closed_after_quit(play: Play) -> None:
    """The second step, for a worker that does not heed `quit`."""
    worker = _ignoring_quit(play)
    worker.end(0)
    play.expect_closed()


@case("H-7")
def sigterm_follows(play: Play) -> None:
    """The third step, for a worker that does not heed the end of its stdin."""
    worker = _ignoring_quit(play)
    worker.expect_sigterm()
    worker.end(0)
    play.expect_closed()


@case("H-7", "H-9")
def sigkill_is_the_last_step(play: Play) -> None:
    """For a worker that heeds nothing. What it has not ended is lost."""
    worker = play.start()
    worker.say(lines.token(play.request("a").id, "so far"))
    worker = _ignoring_quit(play, worker)
    worker.expect_sigterm()
    worker.expect_killed()
    play.driver.expect_failed("a", "worker_lost", text="so far")
    play.expect_closed()


@variants({"child": False, "daemon": True}, "H-7")
def a_process_that_holds_the_pipes_delays_the_end_no_longer_than_the_steps(play: Play, daemon: bool) -> None:
    """A child of the worker's that outlives it: one in its group is ended, one that has left the group is let be."""
    worker = play.start()
    worker.fork(daemon=daemon)
    child = play.next_worker(play.timeout)
    play.close()
    if child and not daemon:
        child.expect_killed()


@variants({"exit-0": 0, "killed": -SIGKILL}, "H-9", "T-3")
def a_death_while_closing_loses_what_runs(play: Play, status: int) -> None:
    """An exit with code 0 without the terminals is no success either."""
    worker = play.start()
    play.request("a")
    play.driver.do(do="close")
    worker.expect("quit")
    worker.end(status)
    play.driver.expect_failed("a", "worker_lost")
    play.expect_closed()


@case("H-7")
def a_dead_worker_is_closed_at_once(play: Play) -> None:
    """There is nobody to climb down to."""
    play.start().end(70)
    play.driver.do(do="close")
    play.expect_closed()


def _ignoring_quit(play: Play, worker: Worker | None = None) -> Worker:
    """Has the host close a worker that answers neither `quit` nor the end of its stdin, which must come alone."""
    worker = worker or play.start()
    worker.hold_sigterm()
    play.driver.do(do="close")
    worker.expect("quit")
    worker.expect_end_of_input()
    if worker.sigterm_came():
        raise Failure("the end of stdin and a wait", "SIGTERM at the same time")
    return worker
