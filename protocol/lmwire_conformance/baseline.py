"""Known failures: cases that may fail, each with its reason. An entry that is not true any more is a failure itself."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from .report import CaseResult

Baseline = dict[str, str]
"""The reason for each case that is known to fail."""


def read(path: Path) -> Baseline:
    """A baseline file: a line `name: reason` for each case; empty lines and those that start with `#` are ignored.

    Raises:
        ValueError: a line is not of this form.
        OSError: the file cannot be read.
    """
    entries: Baseline = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not text.strip() or text.startswith("#"):
            continue
        name, _, reason = (part.strip() for part in text.partition(": "))
        if not reason or name in entries:
            raise ValueError(f"{path}:{number}: a line is `name: reason`, with a reason, and a name comes once")
        entries[name] = reason
    return entries


def apply(baseline: Baseline, cases: Sequence[CaseResult], names: Collection[str]) -> list[CaseResult]:
    """The cases as the baseline judges them: known failures do not count, stale entries do.

    Args:
        baseline: the known failures.
        cases: what was tried.
        names: every case that there is, tried or not; an entry for none of them is stale.
    """
    judged = [_judge(case, baseline.get(case.name)) for case in cases]
    unknown = [name for name in baseline if name not in names]
    return judged + [
        CaseResult(name, (), "stale", "a case of this name", "the baseline names a case that does not exist")
        for name in unknown
    ]


def _judge(case: CaseResult, reason: str | None) -> CaseResult:
    if reason is None:
        return case
    if case.outcome == "skip":
        return case
    if case.outcome == "fail":
        return replace(case, outcome="known")
    return replace(case, outcome="stale", expected=f"a failure: {reason}", seen="it passes; remove this entry")
