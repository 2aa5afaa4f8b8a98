"""Play cases against a host's driver, one at a time.

The cases of a group share a process of the driver, because the start of a driver can take long. A case that fails in a
shared process is played again in a process of its own, and that result counts: what an earlier case left in the driver
never fails a later one.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from time import monotonic
from typing import Final, NamedTuple

from .. import baseline
from ..report import CaseResult
from .case_failure import CaseFailure, DriverExited, Inconclusive
from .cases import CASES, HostCase
from .context import CaseContext
from .driver_process import DriverProcess

_INDENT: Final = "\n         "
_MORE_PATIENCE: Final = 4.0
"""Factor by which a host is asked to wait longer if it gave up before its worker was up."""


def check_host(
    command: Sequence[str],
    *,
    only: Sequence[str] = (),
    known: baseline.Baseline | None = None,
    seconds: float = 10.0,
    on_result: Callable[[CaseResult], None] = lambda result: None,
) -> list[CaseResult]:
    """Play the cases against a host.

    Args:
        command: Starts the driver.
        only: Names of rules, cases or groups to play instead of all.
        known: Known failures.
        seconds: Maximum seconds of any wait.
        on_result: Called with each result, before the baseline applies. A result that a later one of the same name
            replaces was not yet certain.

    Raises:
        ValueError: `only` names something that does not exist.
        OSError: The command cannot be started.
    """
    runner = _Runner(command, seconds, on_result)
    for _, group in groupby(_chosen(only), lambda case: case.group):
        runner.run(list(group))
    return baseline.apply(known or {}, list(runner.results.values()), {case.name for case in CASES})


def _chosen(only: Sequence[str]) -> list[HostCase]:
    for name in only:
        if not any(name in case.selectors for case in CASES):
            raise ValueError(f"no case is named {name!r} or proves such a rule")
    return [case for case in CASES if not only or any(name in case.selectors for name in only)]


class _Outcome(NamedTuple):
    """The outcome of playing a case once.

    Args:
        result: The result, if it is certain.
        failure: The failure, if the case failed.
        at_exit: True if the driver failed to exit properly, after the case had passed.
    """

    result: CaseResult
    failure: CaseFailure | None = None
    at_exit: bool = False

    @property
    def is_certain(self) -> bool:
        """Return whether the outcome proves anything."""
        return not isinstance(self.failure, Inconclusive)


class _Runner:
    """Plays groups of cases.

    Args:
        command: Starts the driver.
        seconds: Maximum seconds of any wait.
        on_result: Called with each result.

    Attributes:
        results: The results so far, by the name of the case, in the order of the cases.
    """

    def __init__(self, command: Sequence[str], seconds: float, on_result: Callable[[CaseResult], None]) -> None:
        self.results: dict[str, CaseResult] = {}
        self._command = command
        self._seconds = seconds
        self._on_result = on_result
        self._share = True

    def run(self, cases: list[HostCase]) -> None:
        """Play the cases of a group, in as few processes of the driver as possible."""
        while cases:
            played, uncertain = self._run_shared(cases if self._share else cases[:1])
            for case in uncertain:
                self._run_alone(case)
            cases = cases[played:]

    def _run_shared(self, cases: list[HostCase]) -> tuple[int, list[HostCase]]:
        """Play cases in one process until one fails.

        Returns:
            The number of cases played, and those of them whose result is uncertain.
        """
        with DriverProcess(self._command, self._seconds) as process:
            for number, case in enumerate(cases, 1):
                outcome = self._play(process, case, is_last=case is cases[-1])
                if outcome.failure is None:
                    self._add(outcome.result)
                elif outcome.is_certain and number == 1:
                    self._add(outcome.result)
                    return number, []
                elif outcome.at_exit:
                    return number, cases[:number]
                else:
                    if isinstance(outcome.failure, DriverExited) and process.exited_cleanly:
                        self._share = False  # it plays one case in each process, as it may
                    return number, [*process.late_cases(cases), case]
            return len(cases), process.late_cases(cases)

    def _run_alone(self, case: HostCase) -> None:
        """Play a case in a process of its own; again, with a more patient host, if the machine was too slow."""
        patience = 1.0
        while True:
            with DriverProcess(self._command, self._seconds) as process:
                outcome = self._play(process, case, is_last=True, patience=patience)
            if outcome.is_certain or patience * _MORE_PATIENCE > self._seconds:
                return self._add(outcome.result)
            patience *= _MORE_PATIENCE

    def _play(self, process: DriverProcess, case: HostCase, *, is_last: bool, patience: float = 1.0) -> _Outcome:
        started, at_exit = monotonic(), False
        with CaseContext(process, self._seconds, patience) as context:
            try:
                case.run(context)
                context.finish()
                at_exit = is_last
                if is_last:
                    context.driver.finish()
            except CaseFailure as failure:
                seen = _INDENT.join([failure.seen, "after", *context.log])
                rules, spent = failure.rules or case.rules, monotonic() - started
                result = CaseResult(case.name, rules, "fail", failure.expected, seen, spent)
                return _Outcome(result, failure, at_exit)
        return _Outcome(CaseResult(case.name, case.rules, "pass", seconds=monotonic() - started))

    def _add(self, result: CaseResult) -> None:
        self.results[result.name] = result
        self._on_result(result)
