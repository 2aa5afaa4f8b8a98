"""Names of other systems in docs/migrating.md."""

import re
from typing import Final

_SYSTEM: Final = re.compile(r"^## (?:MLXServer|mlx-knife|proxy-inference-engine|go-mlx|tabbyAPI)\n", flags=re.MULTILINE)
_FIRST_CELL: Final = re.compile(r"^\|(?:\\.|[^|\\\n])*(?=\|)", flags=re.MULTILINE)


def without_foreign_names(page: str) -> str:
    """Return a page without the first columns of the tables about other systems."""
    if not (first := _SYSTEM.search(page)):
        return page
    return page[: first.start()] + _FIRST_CELL.sub("| ", page[first.start() :])
