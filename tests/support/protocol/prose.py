"""The two parts of the protocol's text as data: tables by heading, transcripts, rules, links.

A heading that both parts have, such as `chat`, has the tables of both.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
CORE = ROOT / "PROTOCOL.md"
MODELS = ROOT / "protocol" / "MODELS.md"
DOCUMENTS = (CORE, MODELS)

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

    document: str
    heading: str
    number: int
    lines: list[tuple[str, str]]


def tables() -> dict[str, list[Table]]:
    """Return every table of both parts, by the heading above it."""
    found: dict[str, list[Table]] = {}
    for document in DOCUMENTS:
        heading, table = "", None
        for line in _lines(document):
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
    """Return every fenced conversation of a kind: `transcript` or `bridge`."""
    found: list[Transcript] = []
    for document in DOCUMENTS:
        heading, inside = "", False
        for number, line in enumerate(_lines(document), 1):
            if line.startswith("```"):
                inside = line == f"```{kind}"
                if inside:
                    found.append(Transcript(document.name, heading, number, []))
            elif inside:
                arrow, text = line.split(" ", 1)
                found[-1].lines.append((arrow, text))
            elif match := _HEADING.match(line):
                heading = match[1]
    return found


def rules(*documents: Path) -> list[str]:
    """Return the names of the rules that some parts define, or all of them, in their order."""
    found = [re.findall(r"\*\*\[([A-Z]-\d+)\]\*\*", _text(document)) for document in documents or DOCUMENTS]
    return [rule for part in found for rule in part]


def cited_rules() -> set[str]:
    """Return the names of the rules that any sentence refers to."""
    return {rule for document in DOCUMENTS for rule in re.findall(r"\[([A-Z]-\d+)\]", _text(document))}


def anchors(document: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    return {anchor(match[1]) for line in _lines(document) if (match := _HEADING.match(line))}


def anchor(heading: str) -> str:
    """Return a heading's anchor."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def links(document: Path) -> list[str]:
    """Return the targets of a page's links that lead to files or headings of the repository."""
    text = re.sub(r"^```.*?^```$", "", _text(document), flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def _text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def _lines(document: Path) -> list[str]:
    return _text(document).split("\n")
