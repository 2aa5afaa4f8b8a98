"""The navigation of the documentation site, without a build of it. At night test_site.py builds the site."""

import re

from support.process.lmwire_command import REPOSITORY

MADE = {"index.md", "reference/protocol.md", "reference/python.md", "reference/http.md"}
"""Pages that a build of the site makes."""


def test_it_lists_each_page_of_the_docs_and_nothing_that_does_not_exist() -> None:
    text = (REPOSITORY / "tools/docs_site/mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", text.partition("\nnav:\n")[2], re.MULTILINE)
    assert len(listed) == len({*listed})
    assert [page for page in listed if page not in MADE and not (REPOSITORY / page).is_file()] == []
    assert {f"docs/{page.name}" for page in (REPOSITORY / "docs").glob("*.md")} - {*listed} == set()
