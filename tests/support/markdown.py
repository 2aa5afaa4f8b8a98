"""Parts of Markdown pages."""

import re
from pathlib import Path


def blocks(language: str, text: str) -> list[str]:
    """Return a page's fenced blocks of a language, such as `rust` or `rust,no_run`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def first_block(language: str, page: Path) -> str:
    """Return the first fenced block of a language of a page."""
    return blocks(language, page.read_text(encoding="utf-8"))[0]
