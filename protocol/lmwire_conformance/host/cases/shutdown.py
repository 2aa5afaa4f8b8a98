"""The way down: `quit`, the end of stdin, SIGTERM, SIGKILL, each after a bounded wait, and reading all the while."""

from signal import SIGKILL

from .. import wire
from ..case_failure import CaseFailure
from ..context import CaseContext
from ..played_worker import PlayedWorker
from .registry import case, variants


@case("H-7", "E-1")
def a_worker_is_asked_to_quit(context: CaseContext) -> None:
    """The first step, and the only one for a worker that does what it is asked."""
    worker = context.start()
    worker.block_sigterm()
    context.driver.instruct(do="close")
    quit = worker.expect("quit")
    if worker.sigterm_arrived():
        raise CaseFailure("`quit` and a wait", "SIGTERM at the same time")
    worker.write(wire.quit_done(quit.id))
    worker.end(0)
    context.expect_closed()


@case("H-7", "E-1", "O-2")
def what_runs_ends_with_its_terminals(context: CaseContext) -> None:
    """A request that quitting cancels is ended by the worker, and told as that."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.token(id, "so far"))
    context.driver.instruct(do="close")
    quit = worker.expect("quit")
    worker.write(wire.token(id, "."), wire.result_done(id, "cancelled"), wire.quit_done(quit.id))
    worker.end(0)
    context.driver.expect_done("a", text="so far.", finish_reason="cancelled")
    context.expect_closed()


@case("H-2", "H-7", "E-3")
def both_pipes_are_read_while_closing(context: CaseContext) -> None:
    """A worker that still has much to write, on stdout and stderr, can write it and exit."""
    worker = context.start()
    id = context.request("a").id
    context.driver.instruct(do="close")
    quit = worker.expect("quit")
    worker.flood_stderr()
    worker.write(*[wire.token(id, "x" * 1000)] * 500, wire.result_done(id, "cancelled"), wire.quit_done(quit.id))
    worker.end(0)
    context.driver.expect_done("a", text="x" * 500_000, finish_reason="cancelled")
    context.expect_closed()


@case("H-7")
def stdin_is_closed_after_quit(context: CaseContext) -> None:
    """The second step, for a worker that does not heed `quit`."""
    worker = _ignoring_quit(context)
    worker.end(0)
    context.expect_closed()


@case("H-7")
def sigterm_follows(context: CaseContext) -> None:
    """The third step, for a worker that does not heed the end of its stdin."""
    worker = _ignoring_quit(context)
    worker.expect_sigterm()
    worker.end(0)
    context.expect_closed()


@case("H-7", "H-9")
def sigkill_is_the_last_step(context: CaseContext) -> None:
    """For a worker that heeds nothing. What it has not ended is lost."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    worker = _ignoring_quit(context, worker)
    worker.expect_sigterm()
    worker.expect_killed()
    context.driver.expect_failed("a", "worker_lost", text="so far")
    context.expect_closed()


@variants({"child": False, "daemon": True}, "H-7")
def a_process_that_holds_the_pipes_delays_the_end_no_longer_than_the_steps(context: CaseContext, daemon: bool) -> None:
    """A child of the worker's that outlives it: one in its group is ended, one that has left the group is let be."""
    worker = context.start()
    worker.fork(daemon=daemon)
    child = context.next_worker(context.timeout)
    context.close()
    if child and not daemon:
        child.expect_killed()


@variants({"exit-0": 0, "killed": -SIGKILL}, "H-9", "T-3")
def a_death_while_closing_loses_what_runs(context: CaseContext, status: int) -> None:
    """An exit with code 0 without the terminals is no success either."""
    worker = context.start()
    context.request("a")
    context.driver.instruct(do="close")
    worker.expect("quit")
    worker.end(status)
    context.driver.expect_failed("a", "worker_lost")
    context.expect_closed()


@case("H-7")
def a_dead_worker_is_closed_at_once(context: CaseContext) -> None:
    """There is nobody to climb down to."""
    context.start().end(70)
    context.driver.instruct(do="close")
    context.expect_closed()


def _ignoring_quit(context: CaseContext, worker: PlayedWorker | None = None) -> PlayedWorker:
    """Has the host close a worker that answers neither `quit` nor the end of its stdin, which must come alone."""
    worker = worker or context.start()
    worker.block_sigterm()
    context.driver.instruct(do="close")
    worker.expect("quit")
    worker.expect_end_of_input()
    if worker.sigterm_arrived():
        raise CaseFailure("the end of stdin and a wait", "SIGTERM at the same time")
    return worker
