"""Make the tabs of the site's first page: the first program in six languages, as docs/quick-start.md has it."""

import re
import textwrap
from pathlib import Path
from typing import Final

MARKER: Final = "<!-- first programs -->"
"""The place of the tabs in pages/index.md."""
LANGUAGES: Final = {"Python": "python", "Node": "js", "Go": "go", "Rust": "rust", "C": "c", "Shell": "sh"}
"""Sections of docs/quick-start.md, and the language of the program that each has."""


def make_tabs(repository: Path) -> str:
    """Return the tabs, as markdown.

    Args:
        repository: Folder of the repository.
    """
    quick_start = (repository / "docs" / "quick-start.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.+)\n", quick_start, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    return "\n".join(_tab(name, _program(sections[name], language)) for name, language in LANGUAGES.items())


def _program(section: str, language: str) -> str:
    """Return the first block of a language, with its fences."""
    found = re.search(rf"^```{language}\n.*?^```$", section, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/quick-start.md has no block in {language}"
    return found[0]


def _tab(name: str, content: str) -> str:
    return f'=== "{name}"\n\n{textwrap.indent(content, "    ")}\n'
