"""Checks of every reply to `ping`: its state, age and counts agree with each other and with the requests."""

from typing import Any, Final

from ..violation import Violation

RULES: Final = ("L-4", "L-5", "L-6")
"""The rules that this module checks on every `done` of every ping."""

_RESTING: Final = ("idle", "paused")


def check(done: dict[str, Any], in_flight: int, line: bytes, *, ending: bool) -> None:
    """Check a reply to `ping` against the requests that the worker can have.

    Args:
        done: The reply.
        in_flight: Number of requests without a terminal when the ping was sent. Later lines are read later.
        line: The reply as the worker wrote it.
        ending: True if the host has asked the worker to end.

    Raises:
        Violation: The reply contradicts itself or the requests.
    """
    state, age, known = done["state"], done.get("step_age_ms"), done["active"] + done["queued"]
    if known > in_flight:
        raise Violation(("L-4",), f"at most {in_flight} requests, active and queued: the others have ended", line)
    if state == "idle" and done["active"]:
        raise Violation(("L-4",), "no active requests in an idle worker", line)
    if not known and state not in ("idle", "draining"):
        raise Violation(("L-4",), "an idle worker, since no request is in flight", line)
    if state == "draining" and not ending:
        raise Violation(("L-5",), "a worker that does not end, since nobody asked it to", line)
    if age is not None and (state in _RESTING or not known):
        raise Violation(("L-6",), f"no step_age_ms: a worker that is {state} computes nothing", line)
    if age is None and state not in (*_RESTING, "draining"):
        raise Violation(("L-6",), f"a step_age_ms: a worker that is {state} computes", line)
