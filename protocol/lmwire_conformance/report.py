"""What was tried and how it went: for a person, for a CI system (JUnit XML), for a program (JSON)."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal
from xml.etree import ElementTree

Outcome = Literal["pass", "fail", "known", "stale", "skip"]
"""`known`: it fails, as the baseline says. `stale`: it passes, although the baseline says that it fails. `skip`: it is
about features that are not there."""

PASSED: Final = 0
FAILED: Final = 1
USAGE: Final = 64


@dataclass(frozen=True)
class CaseResult:
    """One thing that was tried.

    Args:
        name: unique within a report, and stable: baselines and `--only` name it.
        rules: the rules of PROTOCOL.md that it proves, as `F-3`; of a failure, those that are broken.
        outcome: see `Outcome`.
        expected: of a failure, what should have come: a line, or a sentence; of a skipped one, what it needs.
        seen: of a failure, what came instead; of a skipped one, why it cannot be.
        seconds: how long it took.
    """

    name: str
    rules: tuple[str, ...]
    outcome: Outcome
    expected: str = ""
    seen: str = ""
    seconds: float = 0.0

    @property
    def is_failure(self) -> bool:
        """Whether the whole report fails for it."""
        return self.outcome in ("fail", "stale")


def exit_code(cases: Sequence[CaseResult]) -> int:
    """0 when all is well, 1 when something failed, or when nothing was tried."""
    tried = [case for case in cases if case.outcome != "skip"]
    return FAILED if not tried or any(case.is_failure for case in cases) else PASSED


def format_result(case: CaseResult) -> str:
    """One case as a line for a person, and as four when there is more to say."""
    head = f"{case.outcome:5}  {case.name}  [{' '.join(case.rules)}]  {case.seconds:.2f} s"
    if case.outcome == "pass":
        return head
    return f"{head}\n       expected: {case.expected}\n       seen:     {case.seen}"


def summary(cases: Sequence[CaseResult]) -> str:
    """How many of each outcome, in one line."""
    counts = Counter(case.outcome for case in cases)
    words = {
        "pass": "passed",
        "fail": "failed",
        "known": "failed as the baseline says",
        "stale": "stale in the baseline",
        "skip": "skipped",
    }
    said = [f"{counts[outcome]} {word}" for outcome, word in words.items() if counts[outcome] or outcome == "pass"]
    return f"{', '.join(said)} in {sum(case.seconds for case in cases):.1f} s"


def as_json(cases: Sequence[CaseResult]) -> str:
    """`{"passed": …, "cases": […]}`, each case with the members of `Case`."""
    report = {"passed": exit_code(cases) == PASSED, "cases": [asdict(case) for case in cases]}
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def as_junit(cases: Sequence[CaseResult], suite: str) -> str:
    """JUnit XML of one suite. A known failure counts as skipped, too."""
    counts = Counter(case.outcome for case in cases)
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(cases)),
        failures=str(sum(case.is_failure for case in cases)),
        skipped=str(counts["known"] + counts["skip"]),
        errors="0",
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        element = ElementTree.SubElement(
            root, "testcase", classname=suite, name=_printable(case.name), time=f"{case.seconds:.3f}"
        )
        if case.outcome != "pass":
            kind = "failure" if case.is_failure else "skipped"
            child = ElementTree.SubElement(element, kind, message=f"{case.outcome}: {' '.join(case.rules)}")
            child.text = _printable(f"expected: {case.expected}\nseen:     {case.seen}")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """The text without the control characters that XML cannot hold."""
    return "".join(char if char >= " " or char in "\t\n" else f"\\x{ord(char):02x}" for char in text)
