"""Cancels and timeouts."""

from lmwire_protocol import Cancel

from .. import wire
from ..case_failure import CaseFailure, quote
from ..context import CaseContext
from ..played_worker import HostRequest
from .registry import case

_TIMEOUT_S = 0.3
"""Seconds after which a host gives up a request here, unless the machine needs longer to bring it some text."""


@case("C-3", "C-4", "O-2")
def ends_a_cancelled_request_with_its_terminal(context: CaseContext) -> None:
    """Pass on the text that comes after a cancel, and the terminal."""
    worker = context.start()
    id, other = context.request("a").id, context.request("b").id
    worker.write(wire.token(id, "so "))
    context.driver.expect_text("a", "so ")
    context.driver.cancel("a")
    cancel = _expect_cancel(context, id)
    worker.write(wire.token(id, "far"), wire.cancel_done(cancel.id, 1), wire.token(id, "."))
    worker.write(wire.result_done(id, "cancelled"), wire.result_done(other))
    context.driver.expect_done("a", text="so far.", finish_reason="cancelled")
    context.driver.expect_done("b")


@case("C-5")
def keeps_the_terminal_before_a_late_cancel(context: CaseContext) -> None:
    """Report the terminal with which the request ended, although it was cancelled too late."""
    worker = context.start()
    id = context.request("a").id
    context.driver.cancel("a")
    cancel = _expect_cancel(context, id)
    worker.write(wire.token(id, "whole"), wire.result_done(id), wire.cancel_done(cancel.id, 0))
    context.driver.expect_done("a", text="whole")


@case("C-3")
def fails_a_cancelled_load(context: CaseContext) -> None:
    """Report `cancelled` for a command without a partial result."""
    worker = context.start()
    id = context.request("a", "load", path="/models/played").id
    worker.write(wire.progress(id, "read", "bytes"))
    context.driver.cancel("a")
    cancel = _expect_cancel(context, id)
    worker.write(wire.cancel_done(cancel.id, 1), wire.error(id, "cancelled", loaded=True))
    context.driver.expect_failed("a", "cancelled", retryable=False)


@case("H-8")
def cancels_a_request_that_it_gives_up(context: CaseContext) -> None:
    """Report `timeout` to its caller and cancel the request; the worker stays usable."""
    worker = context.start()
    id = context.request("a", timeout=_TIMEOUT_S * context.patience).id
    with context.before_the_request_times_out("a"):
        worker.write(wire.token(id, "so far"))
        context.driver.expect_text("a", "so far")
    cancel = _expect_cancel(context, id)
    context.driver.expect_failed("a", "timeout", text="so far")
    worker.write(wire.cancel_done(cancel.id, 1), wire.result_done(id, "cancelled"))
    worker.write(wire.result_done(context.request("b").id))
    context.driver.expect_done("b")


@case("H-8", "I-2")
def keeps_the_id_of_a_request_that_it_gave_up(context: CaseContext) -> None:
    """Do not use the id again before its terminal, and pass none of its late events on."""
    worker = context.start()
    id = context.request("a", timeout=_TIMEOUT_S).id
    cancel = _expect_cancel(context, id)
    context.driver.expect_failed("a", "timeout")
    worker.write(wire.cancel_done(cancel.id, 1))
    others = {name: context.request(name).id for name in ("b", "c")}  # with ids that are free, as in every case
    worker.write(wire.token(id, "late"), wire.result_done(id, "cancelled"))
    for name, other in others.items():
        worker.write(wire.token(other, name), wire.result_done(other))
        context.driver.expect_done(name, text=name)


@case("H-8")
def cancels_a_load_that_it_gives_up(context: CaseContext) -> None:
    """Cancel a load like any other request."""
    worker = context.start()
    id = context.request("a", "load", path="/models/played", timeout=_TIMEOUT_S).id
    cancel = _expect_cancel(context, id)
    context.driver.expect_failed("a", "timeout")
    worker.write(wire.cancel_done(cancel.id, 1), wire.error(id, "cancelled", loaded=False))


def _expect_cancel(context: CaseContext, target: str) -> HostRequest:
    """Wait for the cancel of one request, and return it."""
    cancel = context.worker.expect("cancel")
    if cancel.command != Cancel(target=target):
        raise CaseFailure(f"a `cancel` with the target {target!r}", quote(cancel.line))
    return cancel
