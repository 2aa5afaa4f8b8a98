"""Write the table of formats into docs/tool-calls.md: `python tools/tool_formats_table.py`, or `--check` to compare."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from lmwire_worker.tool_parsers import FORMATS, ToolFormat

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
TURNS: Final = import_module("support.models.family_turns").TURNS
PAGE: Final = ROOT / "docs" / "tool-calls.md"
START: Final = "<!-- formats: tools/tool_formats_table.py -->\n"
END: Final = "<!-- end of formats -->\n"
SHAPES: Final = {
    "JsonCall": "JSON",
    "TaggedCall": "tags",
    "NestedCall": "tags",
    "PythonCall": "Python",
    "GemmaCall": "Gemma's notation",
}


KEPT: Final = {"turn": "kept for a turn", "always": "kept", "never": "dropped"}
"""Words for the turns whose reasoning a family's template writes."""


def table() -> str:
    """Return the table, with a row for each format."""
    rows = ["| name | shape | models | how it was checked |", "| --- | --- | --- | --- |"]
    for name in sorted(FORMATS):
        found = FORMATS[name]
        rows.append(f"| `{name}` | {shape_of(found)} | {found.models} | {checks_of(name)} |")
    return "\n".join(rows) + "\n"


def shape_of(tool_format: ToolFormat) -> str:
    """Return the shape of a format's calls, in a word or two."""
    return SHAPES[type(tool_format.shape).__name__]


def checks_of(name: str) -> str:
    """Return what the tests compare for a format; the page explains the words."""
    turns = TURNS[name]
    found = f"found as `{turns.found_as}`" if turns.found_as else "found" if turns.calls else "taught"
    reasoning = f", reasoning {KEPT[turns.kept]}" if turns.thought else ""
    return f"{found}, cut, round trip, enforced{reasoning}"


def page_with_table(page: str) -> str:
    """Return the page with a new table between its marks."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> None:
    """Write the table, or compare it."""
    page = PAGE.read_text()
    if "--check" in sys.argv:
        sys.exit(page != page_with_table(page))
    PAGE.write_text(page_with_table(page))


if __name__ == "__main__":
    main()
