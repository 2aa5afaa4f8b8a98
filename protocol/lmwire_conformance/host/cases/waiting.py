"""A host that does not wait to the end: cancels and timeouts."""

from lmwire_protocol import Cancel

from .. import lines
from ..failure import Failure, quote
from ..play import Play
from ..worker import Request
from .registry import case

_PATIENCE_S = 0.3


@case("C-3", "C-4", "O-2")
def a_cancelled_request_ends_with_its_terminal(play: Play) -> None:
    """Text that comes after the cancel counts, and so does the terminal."""
    worker = play.start()
    id, other = play.request("a").id, play.request("b").id
    worker.say(lines.token(id, "so "))
    play.driver.expect_text("a", "so ")
    play.driver.do(do="cancel", name="a")
    cancel = _expect_cancel(play, id)
    worker.say(lines.token(id, "far"), lines.cancelled(cancel.id, 1), lines.token(id, "."))
    worker.say(lines.result(id, "cancelled"), lines.result(other))
    play.driver.expect_done("a", text="so far.", finish_reason="cancelled")
    play.driver.expect_done("b")


@case("C-5")
def a_cancel_that_comes_too_late_changes_nothing(play: Play) -> None:
    """The request keeps the terminal that it has ended with."""
    worker = play.start()
    id = play.request("a").id
    play.driver.do(do="cancel", name="a")
    cancel = _expect_cancel(play, id)
    worker.say(lines.token(id, "whole"), lines.result(id), lines.cancelled(cancel.id, 0))
    play.driver.expect_done("a", text="whole")


@case("C-3")
def a_cancelled_load_fails(play: Play) -> None:
    """A command without a partial result ends with `cancelled`."""
    worker = play.start()
    id = play.request("a", "load", path="/models/played").id
    worker.say(lines.progress(id, "read", "bytes"))
    play.driver.do(do="cancel", name="a")
    cancel = _expect_cancel(play, id)
    worker.say(lines.cancelled(cancel.id, 1), lines.error(id, "cancelled", loaded=True))
    play.driver.expect_failed("a", "cancelled", retryable=False)


@case("H-8")
def a_request_that_is_given_up_is_cancelled(play: Play) -> None:
    """The host tells its caller `timeout`, and the worker to stop; the worker goes on."""
    worker = play.start()
    id = play.request("a", timeout=_PATIENCE_S).id
    worker.say(lines.token(id, "so far"))
    cancel = _expect_cancel(play, id)
    play.driver.expect_failed("a", "timeout", text="so far")
    worker.say(lines.cancelled(cancel.id, 1), lines.result(id, "cancelled"))
    worker.say(lines.result(play.request("b").id))
    play.driver.expect_done("b")


@case("H-8", "I-2")
def an_id_that_was_given_up_stays_taken(play: Play) -> None:
    """Until its terminal, however late that is; what comes for it reaches no other request and no caller."""
    worker = play.start()
    id = play.request("a", timeout=_PATIENCE_S).id
    cancel = _expect_cancel(play, id)
    play.driver.expect_failed("a", "timeout")
    worker.say(lines.cancelled(cancel.id, 1))
    others = {name: play.request(name).id for name in ("b", "c")}  # with ids that are free, as in every case
    worker.say(lines.token(id, "late"), lines.result(id, "cancelled"))
    for name, other in others.items():
        worker.say(lines.token(other, name), lines.result(other))
        play.driver.expect_done(name, text=name)


@case("H-8")
def a_load_that_is_given_up_is_cancelled(play: Play) -> None:
    """As any request."""
    worker = play.start()
    id = play.request("a", "load", path="/models/played", timeout=_PATIENCE_S).id
    cancel = _expect_cancel(play, id)
    play.driver.expect_failed("a", "timeout")
    worker.say(lines.cancelled(cancel.id, 1), lines.error(id, "cancelled", loaded=False))


def _expect_cancel(play: Play, target: str) -> Request:
    """Waits for the cancel of one request."""
    cancel = play.worker.expect("cancel")
    if cancel.command != Cancel(target=target):
        raise Failure(f"a `cancel` with the target {target!r}", quote(cancel.line))
    return cancel
