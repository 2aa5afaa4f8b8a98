"""Shutdown: `quit`, the end of stdin, SIGTERM, SIGKILL, each after a bounded wait. The host reads all the time."""

from signal import SIGKILL
from typing import Final

from lmwire_protocol import Quit

from .. import wire
from ..case_failure import CaseFailure
from ..context import CaseContext
from ..played_worker import PlayedWorker
from .registry import case, variants

_LONGEST_STEP_S: Final = 2.5
"""Seconds that are longer than a step of a host's shutdown, as HOSTS.md says."""


@case("H-7", "E-1")
def sends_quit_first(context: CaseContext) -> None:
    """Send `quit`, and take no other step for a worker that obeys it."""
    worker = context.start()
    worker.block_sigterm()
    with context.before_the_next_step():
        context.driver.instruct(do="close")
        quit = worker.expect("quit")
        if worker.sigterm_arrived():
            raise CaseFailure("`quit` and a wait", "SIGTERM at the same time")
        worker.write(wire.quit_done(quit.id))
    worker.end(0)
    context.expect_closed()


@case("H-7", "E-1", "O-2")
def passes_on_the_terminals_that_come_after_quit(context: CaseContext) -> None:
    """Report a request that `quit` cancels as the worker ends it."""
    worker = context.start()
    id = context.request("a").id
    worker.write(wire.token(id, "so far"))
    with context.before_the_next_step():
        context.driver.instruct(do="close")
        quit = worker.expect("quit")
        worker.write(wire.token(id, "."), wire.result_done(id, "cancelled"), wire.quit_done(quit.id))
    worker.end(0)
    context.driver.expect_done("a", text="so far.", finish_reason="cancelled")
    context.expect_closed()


@case("H-7", "E-1")
def drains_without_a_limit(context: CaseContext) -> None:
    """Send `quit` with `drain`, and take no further step while requests run. Hosts that cannot drain pass."""
    worker = context.start()
    id = context.request("a").id
    context.driver.instruct(do="close", drain=True)
    quit = worker.expect("quit")
    assert isinstance(quit.command, Quit)
    if quit.command.drain:
        worker.block_sigterm()
        if worker.input_ends_within(_LONGEST_STEP_S) or worker.sigterm_arrived():
            raise CaseFailure("a wait for the requests in flight", "the next step of a shutdown")
        worker.write(wire.token(id, "whole"), wire.result_done(id), wire.quit_done(quit.id))
        worker.end(0)
        context.driver.expect_done("a", text="whole")
    else:
        worker.write(wire.result_done(id, "cancelled"), wire.quit_done(quit.id))
        worker.end(0)
    context.expect_closed()


@case("H-2", "H-7", "E-3")
def reads_both_pipes_while_closing(context: CaseContext) -> None:
    """Read stdout and stderr until a worker with much to write has exited."""
    worker = context.start()
    id = context.request("a").id
    with context.before_the_next_step():
        context.driver.instruct(do="close")
        quit = worker.expect("quit")
        worker.flood_stderr()
        worker.write(*[wire.token(id, "x" * 1000)] * 500, wire.result_done(id, "cancelled"), wire.quit_done(quit.id))
    worker.end(0)
    context.driver.expect_done("a", text="x" * 500_000, finish_reason="cancelled")
    context.expect_closed()


@case("H-7")
def closes_stdin_after_quit(context: CaseContext) -> None:
    """Close the stdin of a worker that ignores `quit`."""
    worker = _ignoring_quit(context)
    worker.end(0)
    context.expect_closed()


@case("H-7")
def sends_sigterm_after_the_end_of_stdin(context: CaseContext) -> None:
    """Send SIGTERM to a worker that ignores the end of its stdin."""
    worker = _ignoring_quit(context)
    _expect_sigterm(context)
    worker.end(0)
    context.expect_closed()


@case("H-7", "H-9")
def sends_sigkill_last(context: CaseContext) -> None:
    """Kill a worker that ignores all other steps, and report its requests as lost."""
    worker = context.start()
    worker.write(wire.token(context.request("a").id, "so far"))
    worker = _ignoring_quit(context, worker)
    _expect_sigterm(context)
    worker.expect_killed()
    context.driver.expect_failed("a", "worker_lost", text="so far")
    context.expect_closed()


@variants({"child": False, "daemon": True}, "H-7")
def closes_although_a_process_holds_the_pipes(context: CaseContext, daemon: bool) -> None:
    """Kill a child in the worker's process group, and do not wait for one that has left the group."""
    worker = context.start()
    child = context.fork(worker, daemon=daemon)
    context.close()
    if not daemon:
        child.expect_killed()


@variants({"exit-0": 0, "killed": -SIGKILL}, "H-9", "T-3")
def loses_requests_when_the_worker_dies_while_closing(context: CaseContext, status: int) -> None:
    """Report requests without a terminal as lost, even after an exit with code 0."""
    worker = context.start()
    context.request("a")
    with context.before_the_next_step():
        context.driver.instruct(do="close")
        worker.expect("quit")
    worker.end(status)
    context.driver.expect_failed("a", "worker_lost")
    context.expect_closed()


@case("H-7")
def closes_a_dead_worker_at_once(context: CaseContext) -> None:
    """Report `closed` for a worker that is already dead."""
    context.start().end(70)
    context.driver.instruct(do="close")
    context.expect_closed()


def _ignoring_quit(context: CaseContext, worker: PlayedWorker | None = None) -> PlayedWorker:
    """Return a worker that the host is closing, and that ignores `quit` and the end of stdin, which must come alone."""
    worker = worker or context.start()
    worker.block_sigterm()
    with context.before_the_next_step():
        context.driver.instruct(do="close")
        worker.expect("quit")
        worker.expect_end_of_input()
        if worker.sigterm_arrived():
            raise CaseFailure("the end of stdin and a wait", "SIGTERM at the same time")
    return worker


def _expect_sigterm(context: CaseContext) -> None:
    """Wait for SIGTERM, which the worker must see before SIGKILL."""
    with context.before_the_next_step():
        context.worker.expect_sigterm()
