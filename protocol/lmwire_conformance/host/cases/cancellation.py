"""A host that does not wait to the end: cancels and timeouts."""

from lmwire_protocol import Cancel

from .. import wire
from ..case_failure import CaseFailure, quote
from ..context import CaseContext
from ..played_worker import HostRequest
from .registry import case

_PATIENCE_S = 0.3


@case("C-3", "C-4", "O-2")
def a_cancelled_request_ends_with_its_terminal(context: CaseContext) -> None:
    """Text that comes after the cancel counts, and so does the terminal."""
    worker = context.start()
    id, other = context.request("a").id, context.request("b").id
    worker.write(wire.token(id, "so "))
    context.driver.expect_text("a", "so ")
    context.driver.instruct(do="cancel", name="a")
    cancel = _expect_cancel(context, id)
    worker.write(wire.token(id, "far"), wire.cancel_done(cancel.id, 1), wire.token(id, "."))
    worker.write(wire.result_done(id, "cancelled"), wire.result_done(other))
    context.driver.expect_done("a", text="so far.", finish_reason="cancelled")
    context.driver.expect_done("b")


@case("C-5")
def a_cancel_that_comes_too_late_changes_nothing(context: CaseContext) -> None:
    """The request keeps the terminal that it has ended with."""
    worker = context.start()
    id = context.request("a").id
    context.driver.instruct(do="cancel", name="a")
    cancel = _expect_cancel(context, id)
    worker.write(wire.token(id, "whole"), wire.result_done(id), wire.cancel_done(cancel.id, 0))
    context.driver.expect_done("a", text="whole")


@case("C-3")
def a_cancelled_load_fails(context: CaseContext) -> None:
    """A command without a partial result ends with `cancelled`."""
    worker = context.start()
    id = context.request("a", "load", path="/models/played").id
    worker.write(wire.progress(id, "read", "bytes"))
    context.driver.instruct(do="cancel", name="a")
    cancel = _expect_cancel(context, id)
    worker.write(wire.cancel_done(cancel.id, 1), wire.error(id, "cancelled", loaded=True))
    context.driver.expect_failed("a", "cancelled", retryable=False)


@case("H-8")
def a_request_that_is_given_up_is_cancelled(context: CaseContext) -> None:
    """The host tells its caller `timeout`, and the worker to stop; the worker goes on."""
    worker = context.start()
    id = context.request("a", timeout=_PATIENCE_S).id
    worker.write(wire.token(id, "so far"))
    cancel = _expect_cancel(context, id)
    context.driver.expect_failed("a", "timeout", text="so far")
    worker.write(wire.cancel_done(cancel.id, 1), wire.result_done(id, "cancelled"))
    worker.write(wire.result_done(context.request("b").id))
    context.driver.expect_done("b")


@case("H-8", "I-2")
def an_id_that_was_given_up_stays_taken(context: CaseContext) -> None:
    """Until its terminal, however late that is; what comes for it reaches no other request and no caller."""
    worker = context.start()
    id = context.request("a", timeout=_PATIENCE_S).id
    cancel = _expect_cancel(context, id)
    context.driver.expect_failed("a", "timeout")
    worker.write(wire.cancel_done(cancel.id, 1))
    others = {name: context.request(name).id for name in ("b", "c")}  # with ids that are free, as in every case
    worker.write(wire.token(id, "late"), wire.result_done(id, "cancelled"))
    for name, other in others.items():
        worker.write(wire.token(other, name), wire.result_done(other))
        context.driver.expect_done(name, text=name)


@case("H-8")
def a_load_that_is_given_up_is_cancelled(context: CaseContext) -> None:
    """As any request."""
    worker = context.start()
    id = context.request("a", "load", path="/models/played", timeout=_PATIENCE_S).id
    cancel = _expect_cancel(context, id)
    context.driver.expect_failed("a", "timeout")
    worker.write(wire.cancel_done(cancel.id, 1), wire.error(id, "cancelled", loaded=False))


def _expect_cancel(context: CaseContext, target: str) -> HostRequest:
    """Waits for the cancel of one request."""
    cancel = context.worker.expect("cancel")
    if cancel.command != Cancel(target=target):
        raise CaseFailure(f"a `cancel` with the target {target!r}", quote(cancel.line))
    return cancel
