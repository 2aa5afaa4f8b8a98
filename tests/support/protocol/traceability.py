"""The proofs of the rules in the protocol's two parts: TRACEABILITY.md, beside the transcripts.

Run as a program, it writes the file anew. Transcripts, line checks and host cases declare the rules that they prove.
Tests are entered in the file by hand, and are kept.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lmwire_conformance.host.cases import CASES
from lmwire_conformance.worker import (
    answers,
    line_checks,
    pending_lines,
    ping_checks,
    result_checks,
    session,
    transcript,
)
from support.protocol import prose

ROOT = Path(__file__).parents[3]
FILE = ROOT / "protocol" / "transcripts" / "TRACEABILITY.md"
EVERY_LINE = "every line"

_HEAD = """\
# Traceability of the rules

This table lists the proofs of each rule in PROTOCOL.md and MODELS.md. A name such as `#cancel` stands for the sentences
under that heading which are not in a numbered rule.

- *Transcripts* are the files of this folder. `every line` means that the kit checks the rule on each line of each run.
- *Host cases* are the cases of `lmwire conformance host`.
- *Tests* are tests of this repository, for what the kits cannot prove.

`make traceability` rewrites this file. It keeps the column of tests, which is edited by hand.

| rule | MUST | transcripts | host cases | tests |
| --- | --- | --- | --- | --- |
"""
_RULE = re.compile(r"- \*\*\[([A-Z]-\d+)\]\*\* (.*)")
_HEADING = re.compile(r"#+ (.*)")


@dataclass(frozen=True)
class Row:
    """The transcripts, host cases and tests that prove one rule."""

    rule: str
    transcripts: tuple[str, ...]
    host_cases: tuple[str, ...]
    tests: tuple[str, ...]

    def __str__(self) -> str:
        cells = [" ".join(f"`{name}`" for name in names) for names in (self.transcripts, self.host_cases, self.tests)]
        return f"| {self.rule} | {'yes' if must(self.rule) else ''} | {' | '.join(cells)} |\n"


@cache
def statements() -> dict[str, str]:
    """Return the protocol's text by rule, or by heading (as `#anchor`) for text outside rules; in single spaces."""
    texts: dict[str, list[str]] = {}
    heading = name = "#"
    fenced = False
    for line in "\n".join(document.read_text(encoding="utf-8") for document in prose.DOCUMENTS).split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            continue
        elif match := _HEADING.match(line):
            heading = name = f"#{prose.anchor(match[1])}"
        elif match := _RULE.match(line):
            name = match[1]
            texts.setdefault(name, []).append(match[2])
        else:
            if not line.startswith("  "):
                name = heading
            texts.setdefault(name, []).append(line)
    return {name: " ".join(" ".join(text).split()) for name, text in texts.items()}


def must(rule: str) -> bool:
    """Return whether a rule contains MUST or MUST NOT. The sentence that explains these words does not count."""
    text = statements()[rule]
    return "MUST" in text and "RFC 2119" not in text


def rows() -> list[Row]:
    """Return a row for every named rule, and for every heading whose text contains MUST or is proved."""
    tests = entered()
    proving = [(item.name, item.rules) for item in transcript.read_all()]
    checked = {
        *answers.RULES,
        *line_checks.RULES,
        *session.RULES,
        *pending_lines.RULES,
        *result_checks.RULES,
        *ping_checks.RULES,
    }
    cases = {case.name.partition(":")[0]: case.rules for case in CASES}
    claimed = (
        {rule for _, rules in proving for rule in rules} | checked | {rule for case in CASES for rule in case.rules}
    )
    return [
        Row(
            rule,
            tuple([EVERY_LINE] * (rule in checked) + [name for name, rules in proving if rule in rules]),
            tuple(name for name, rules in cases.items() if rule in rules),
            tests.get(rule, ()),
        )
        for rule in statements()
        if not rule.startswith("#") or must(rule) or rule in claimed
    ]


def entered() -> dict[str, tuple[str, ...]]:
    """Return the tests that are entered in the file, by rule."""
    found = re.findall(r"^\| (\S+) \|.*\|([^|]*)\|$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    return {rule: tuple(re.findall(r"`([^`]+)`", cell)) for rule, cell in found}


def written() -> str:
    """Return the text that the file must have."""
    return _HEAD + "".join(map(str, rows()))


@cache
def functions_in(path: str) -> set[str]:
    """Return the names of the functions in a Python file, given by its path in the repository."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
