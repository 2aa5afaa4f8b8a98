"""Text from outside, for a terminal or a log: names and messages that no terminal obeys.

A name can hold an escape sequence that rewrites the screen, or a character that turns the order of others around.
"""

from typing import Final
from unicodedata import category

_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories of characters that a terminal obeys, or that change how others look: controls, formats, line ends."""


def printable(text: str) -> str:
    """Return a message in which characters that a terminal obeys are written as escapes. Newlines and tabs stay."""
    if text.isprintable():
        return text
    return "".join([c if c in "\n\t" or c.isprintable() or category(c) not in _UNSEEN else _escape(c) for c in text])


def one_line(text: str) -> str:
    """Return a name in which newlines and tabs are written as escapes too."""
    return text if text.isprintable() else printable(text).replace("\n", r"\n").replace("\t", r"\t")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
