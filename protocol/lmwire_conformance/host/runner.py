"""Plays cases against a host's driver, one at a time, each in a new process."""

from collections.abc import Callable, Sequence
from time import monotonic

from ..report import Case
from .cases import CASES, HostCase
from .failure import Failure, WorkerEnded
from .play import Play

_INDENT = "\n         "


def names() -> list[str]:
    """Every case there is, in the order in which they are played."""
    return [case.name for case in CASES]


def run(
    command: Sequence[str], *, timeout: float, only: Callable[[str], bool], tell: Callable[[Case], None]
) -> list[Case]:
    """Plays cases.

    Args:
        command: the host's driver.
        timeout: seconds that any wait may take.
        only: whether to play the case of this name.
        tell: called with each case as it ends.

    Raises:
        OSError: the driver cannot be spawned.
    """
    tried = []
    for case in CASES:
        if only(case.name):
            tried.append(_play(case, command, timeout))
            tell(tried[-1])
    return tried


def _play(case: HostCase, command: Sequence[str], timeout: float) -> Case:
    started = monotonic()
    failure: Failure | None = None
    with Play(command, timeout) as play:
        try:
            case.act(play)
            play.finish()
        except Failure as failed:
            failure = failed
        except WorkerEnded:
            failure = Failure("a worker that is left alive", "the host ended it")
    seconds = monotonic() - started
    if failure is None:
        return Case(case.name, case.rules, "pass", seconds=seconds)
    seen = _INDENT.join([failure.seen, "after", *play.trail])
    return Case(case.name, failure.rules or case.rules, "fail", failure.expected, seen, seconds)
