"""What holds for every reply to `ping`: its state, its age and its counts fit together, and fit what was sent."""

from typing import Any, Final

from ..violation import Violation

RULES: Final = ("L-4", "L-5", "L-6")
"""The rules that are checked here, on every `done` of every ping."""

_RESTING: Final = ("idle", "paused")


def check(done: dict[str, Any], in_flight: int, line: bytes, *, ending: bool) -> None:
    """Holds a reply to `ping` against the requests that the worker can have.

    Args:
        done: the reply.
        in_flight: the requests without a terminal when the ping was sent; later lines are read later.
        line: the reply as it was written.
        ending: whether the host has asked the worker to end.

    Raises:
        Violation: they do not fit together.
    """
    state, age, known = done["state"], done.get("step_age_ms"), done["active"] + done["queued"]
    if known > in_flight:
        raise Violation(("L-4",), f"at most {in_flight} requests, active and queued, for others have ended", line)
    if state == "idle" and done["active"]:
        raise Violation(("L-4",), "no active requests in an idle worker", line)
    if not known and state not in ("idle", "draining"):
        raise Violation(("L-4",), "an idle worker, for no request is in flight", line)
    if state == "draining" and not ending:
        raise Violation(("L-5",), "a worker that does not end, for nobody asked it to", line)
    if age is not None and (state in _RESTING or not known):
        raise Violation(("L-6",), f"no step_age_ms, for a worker that is {state} computes nothing", line)
    if age is None and state not in (*_RESTING, "draining"):
        raise Violation(("L-6",), f"a step_age_ms, for a worker that is {state} computes", line)
