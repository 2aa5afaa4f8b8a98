"""Parts of Markdown pages."""

import re
from pathlib import Path
from typing import NamedTuple

from support.process.lmwire_command import REPOSITORY


class Block(NamedTuple):
    """A fenced block.

    Args:
        page: The page's path in the repository.
        line: Number of the line with the opening fence.
        language: What follows the fence, such as `sh` or `rust,no_run`.
        text: The lines between the fences.
    """

    page: str
    line: int
    language: str
    text: str


PAGES = [
    page
    for pattern in ("README.md", "docs/*.md", "clients/*/README.md", "examples/*/README.md")
    for page in sorted(REPOSITORY.glob(pattern))
]
"""The guides. PROTOCOL.md, protocol/MODELS.md and worker/MOCK.md have tests of their own."""


def fenced_blocks(page: Path) -> list[Block]:
    """Return all fenced blocks of a page of the repository."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^(`{3,})(\S*)\n(.*?)^\1$", text, flags=re.MULTILINE | re.DOTALL)
    name = page.relative_to(REPOSITORY).as_posix()
    return [Block(name, text.count("\n", 0, each.start()) + 1, each[2], each[3]) for each in found]


def blocks(language: str, text: str) -> list[str]:
    """Return a page's fenced blocks of a language, such as `rust` or `rust,no_run`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def first_block(language: str, page: Path) -> str:
    """Return the first fenced block of a language of a page."""
    return blocks(language, page.read_text(encoding="utf-8"))[0]
