"""Results of cases, and their reports for a person, for a CI system (JUnit XML) and for a program (JSON)."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal
from xml.etree import ElementTree

Outcome = Literal["pass", "fail", "known", "stale", "skip"]
"""`known`: the case fails, as the baseline says. `stale`: it passes, but the baseline says that it fails. `skip`: the
worker lacks features that the case needs."""

PASSED: Final = 0
FAILED: Final = 1
USAGE: Final = 64


@dataclass(frozen=True)
class CaseResult:
    """The result of a case.

    Args:
        name: Name of the case, unique and stable: baselines and `--only` name it.
        rules: The rules of PROTOCOL.md that the case proves, such as `F-3`. After a failure, the broken rules.
        outcome: See `Outcome`.
        expected: After a failure, the expected line, or a sentence. For a skipped case, the features that it needs.
        seen: After a failure, what came instead. For a skipped case, the reason.
        seconds: Duration of the case.
    """

    name: str
    rules: tuple[str, ...]
    outcome: Outcome
    expected: str = ""
    seen: str = ""
    seconds: float = 0.0

    @property
    def is_failure(self) -> bool:
        """Return whether the result makes the whole report fail."""
        return self.outcome in ("fail", "stale")


def exit_code(cases: Sequence[CaseResult]) -> int:
    """Return 0 if all cases passed, 1 if one failed or if none was played."""
    tried = [case for case in cases if case.outcome != "skip"]
    return FAILED if not tried or any(case.is_failure for case in cases) else PASSED


def format_result(case: CaseResult) -> str:
    """Return a result as one line for a person, or as three if the case did not pass."""
    head = f"{case.outcome:5}  {case.name}  [{' '.join(case.rules)}]  {case.seconds:.2f} s"
    if case.outcome == "pass":
        return head
    return f"{head}\n       expected: {case.expected}\n       seen:     {case.seen}"


def summary(cases: Sequence[CaseResult]) -> str:
    """Return the number of results with each outcome, in one line."""
    counts = Counter(case.outcome for case in cases)
    words: dict[Outcome, str] = {
        "pass": "passed",
        "fail": "failed",
        "known": "failed as the baseline says",
        "stale": "stale in the baseline",
        "skip": "skipped",
    }
    said = [f"{counts[outcome]} {word}" for outcome, word in words.items() if counts[outcome] or outcome == "pass"]
    return f"{', '.join(said)} in {sum(case.seconds for case in cases):.1f} s"


def as_json(cases: Sequence[CaseResult]) -> str:
    """Return the JSON `{"passed": …, "cases": […]}`. Each case has the members of `CaseResult`."""
    report = {"passed": exit_code(cases) == PASSED, "cases": [asdict(case) for case in cases]}
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def as_junit(cases: Sequence[CaseResult], suite: str) -> str:
    """Return the JUnit XML of one suite. A known failure counts as skipped."""
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
    """Return a text without the control characters that XML cannot represent."""
    return "".join(char if char >= " " or char in "\t\n" else f"\\x{ord(char):02x}" for char in text)
