"""PROTOCOL.md as data: its tables by heading, its transcripts, its rules."""

import re
from dataclasses import dataclass, field
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "PROTOCOL.md"

_HEADING = re.compile(r"#+ (.*)")
_CELL = re.compile(r"(?<!\\)\|")


@dataclass
class Table:
    """One table: the columns' names, and the rows, each a cell by column."""

    columns: list[str]
    rows: list[dict[str, str]] = field(default_factory=list)

    def by(self, column: str) -> dict[str, dict[str, str]]:
        """The rows by what stands in one column, without code quotes."""
        return {row[column].strip("`"): row for row in self.rows}


@dataclass
class Transcript:
    """A conversation: pairs of `→` or `←` and a line."""

    heading: str
    number: int
    lines: list[tuple[str, str]]


def tables() -> dict[str, list[Table]]:
    """Every table of the document, by the heading above it."""
    found: dict[str, list[Table]] = {}
    heading, table = "", None
    for line in _lines():
        if match := _HEADING.match(line):
            heading = match[1]
        if not line.startswith("|"):
            table = None
            continue
        cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
        if table is None:
            table = Table(cells)
            found.setdefault(heading, []).append(table)
        elif set(line) - set("|- "):
            table.rows.append(dict(zip(table.columns, cells, strict=True)))
    return found


def transcripts(kind: str) -> list[Transcript]:
    """Every fenced conversation of a kind: `transcript` or `bridge`."""
    found: list[Transcript] = []
    heading, inside = "", False
    for number, line in enumerate(_lines(), 1):
        if line.startswith("```"):
            inside = line == f"```{kind}"
            if inside:
                found.append(Transcript(heading, number, []))
        elif inside:
            arrow, text = line.split(" ", 1)
            found[-1].lines.append((arrow, text))
        elif match := _HEADING.match(line):
            heading = match[1]
    return found


def rules() -> list[str]:
    """The names of the rules, in the order of their definitions."""
    return re.findall(r"\*\*\[([A-Z]-\d+)\]\*\*", _text())


def cited_rules() -> set[str]:
    """The names of the rules that any sentence refers to."""
    return set(re.findall(r"\[([A-Z]-\d+)\]", _text()))


def headings() -> list[str]:
    """Every heading."""
    return [match[1] for line in _lines() if (match := _HEADING.match(line))]


def links() -> set[str]:
    """The anchors that links within the document lead to."""
    return set(re.findall(r"\]\(#([\w-]+)\)", _text()))


def _text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def _lines() -> list[str]:
    return _text().split("\n")
