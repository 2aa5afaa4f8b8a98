"""Plays cases against a host's driver, one at a time, each in a new process."""

from collections.abc import Callable, Sequence
from time import monotonic

from .. import baseline
from ..report import CaseResult
from .case_failure import CaseFailure, Inconclusive
from .cases import CASES, HostCase
from .context import CaseContext

_INDENT = "\n         "
_SLOWER = 4.0
"""Times as long as before that a host is asked to wait, when it gave up before its worker was up."""


def check_host(
    command: Sequence[str],
    *,
    only: Sequence[str] = (),
    known: baseline.Baseline | None = None,
    seconds: float = 10.0,
    on_result: Callable[[CaseResult], None] = lambda case: None,
) -> list[CaseResult]:
    """Plays the cases against a host, a process of its driver for each.

    Args:
        command: what starts the driver.
        only: names of rules, of cases, or of their groups, instead of all.
        known: failures that are known.
        seconds: how long any wait may take.
        on_result: called with the result of each case as it ends, before the baseline applies.

    Raises:
        ValueError: `only` names something that does not exist.
        OSError: the command cannot be started.
    """
    tried: list[CaseResult] = []
    for case in _chosen(only):
        tried.append(_play(case, command, seconds))
        on_result(tried[-1])
    return baseline.apply(known or {}, tried, {case.name for case in CASES})


def _chosen(only: Sequence[str]) -> list[HostCase]:
    for name in only:
        if not any(name in case.selectors for case in CASES):
            raise ValueError(f"no case is named {name!r} or proves such a rule")
    return [case for case in CASES if not only or any(name in case.selectors for name in only)]


def _play(case: HostCase, command: Sequence[str], seconds: float) -> CaseResult:
    """Plays a case; again, with more patience, when the machine was too slow for it to prove anything."""
    pace = 1.0
    while True:
        tried, proved = _play_once(case, command, seconds, pace)
        if proved or pace * _SLOWER > seconds:
            return tried
        pace *= _SLOWER


def _play_once(case: HostCase, command: Sequence[str], seconds: float, pace: float) -> tuple[CaseResult, bool]:
    started = monotonic()
    failure: CaseFailure | None = None
    with CaseContext(command, seconds, pace) as context:
        try:
            case.run(context)
            context.finish()
        except CaseFailure as failed:
            failure = failed
    spent = monotonic() - started
    if failure is None:
        return CaseResult(case.name, case.rules, "pass", seconds=spent), True
    seen = _INDENT.join([failure.seen, "after", *context.trail])
    failed = CaseResult(case.name, failure.rules or case.rules, "fail", failure.expected, seen, spent)
    return failed, not isinstance(failure, Inconclusive)
