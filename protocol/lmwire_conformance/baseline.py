"""Known failures: cases that may fail, each with its reason. An outdated entry is itself a failure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from .report import CaseResult

Baseline = dict[str, str]
"""The reason for each case that is known to fail."""


def read(path: Path) -> Baseline:
    """Return the entries of a baseline file.

    Each line is `name: reason`. Empty lines and lines that start with `#` are ignored.

    Raises:
        ValueError: A line has another form.
        OSError: The file cannot be read.
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
    """Return the results with the baseline applied: known failures do not count, stale entries do.

    Args:
        baseline: The known failures.
        cases: The results.
        names: The names of all existing cases. An entry with another name is stale.
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
