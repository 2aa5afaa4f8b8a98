"""docs/benchmarks.md shows the results that its JSON files have, and how each table was measured."""

import json
import re

import pytest

from support.process.lmwire_command import REPOSITORY

FOLDER = REPOSITORY / "docs" / "benchmarks"
PAGE = (REPOSITORY / "docs" / "benchmarks.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", PAGE, flags=re.MULTILINE)
MEASURED = [title for title, text in SECTIONS if "`lmwire bench " in text and "\n| " in text]


@pytest.mark.parametrize(
    ("file", "title", "name"),
    [
        ("h100-http.json", "HTTP", "random, 2 layers, H100"),
        ("h100-pipe.json", "The pipe", "random, 2 layers, H100"),
        ("h200-pipe.json", "The pipe", "0.6B, H200"),
        *((f"h200-ranks-{name}.json", "Ranks", name) for name in ("0.6B", "4B", "8B", "42B")),
    ],
)
def test_the_ratios_of_a_column_are_those_of_its_file(file: str, title: str, name: str) -> None:
    table = re.search(r"(^\|.*\n)+", dict(SECTIONS)[title], flags=re.MULTILINE)
    assert table
    rows = [[cell.strip() for cell in line.split("|")] for line in table[0].splitlines()]
    column = rows[0].index(name)
    shown = [float(ratio) for row in rows[2:] for ratio in re.findall(r"([\d.]+)\N{MULTIPLICATION SIGN}", row[column])]
    figures = json.loads((FOLDER / file).read_text())["figures"]
    assert sorted(shown) == sorted(round(figure["value"], 2) for figure in figures if figure["unit"] == "x")


@pytest.mark.parametrize("title", MEASURED)
def test_each_table_has_its_date_its_commit_and_its_command(title: str) -> None:
    text = dict(SECTIONS)[title]
    assert re.search(r"\bMeasured\b.*`lmwire bench ", text, flags=re.DOTALL)
    assert re.search(r"\b20\d\d-\d\d-\d\d, commits? [0-9a-f]{8}\b", text)


def test_each_file_is_linked() -> None:
    assert set(re.findall(r"\(benchmarks/(.+?)\)", PAGE)) == {file.name for file in FOLDER.iterdir()}
