"""The limits that SECURITY.md lists, against the code and the tests."""

import re
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from support.many_cases import for_each
from support.process.lmwire_command import REPOSITORY

PAGE: Final = REPOSITORY / "SECURITY.md"
UNITS: Final = {"": 1, "s": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "million": 10**6}


class Limit(NamedTuple):
    """A row of the table."""

    what: str
    number: str
    constant: str
    test: str


def _rows() -> list[Limit]:
    section = PAGE.read_text(encoding="utf-8").split("## Limits\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [Limit(*(cell.strip(" `") for cell in line.strip("|").split("|"))) for line in lines[2:]]


@for_each([*_rows()], lambda row: row.what)
def test_each_limit_has_the_number_of_its_constant(row: Limit) -> None:
    module, _, name = row.constant.rpartition(".")
    match = re.fullmatch(r"([\d,.]+) ?(.*)", row.number)
    assert match, f"{row.number} is no number with a unit"
    assert float(match[1].replace(",", "")) * UNITS[match[2]] == getattr(import_module(module), name)


@for_each([*_rows()], lambda row: row.what)
def test_each_limit_names_a_test_that_exists(row: Limit) -> None:
    path, _, name = row.test.partition("::")
    file = Path(REPOSITORY, path)
    assert file.is_file()
    assert not name or f"def {name}(" in file.read_text(encoding="utf-8")
