"""Patterns for the fixed texts of a format: what a model writes with other white space or quotes still counts."""

import re
from typing import Final

from lmwire_protocol.imports import lazy_pattern

NUMBER: Final = "\0"
"""Placeholder for a call's number in fixed text."""
CALL_ID: Final = "\1"
"""Placeholder for a call's id in fixed text."""
_PIECE: Final = lazy_pattern(r"(\s+|\{\w*\}|[\0\1]|\"\{\w*\}\")")


def pattern_of(text: str, **groups: str) -> str:
    """Return a regular expression for fixed text. White space may be missing, or be more.

    Args:
        text: The text, with placeholders: NUMBER, CALL_ID and `{name}`, which may stand between quotes.
        **groups: The pattern of each `{name}`.
    """
    return "".join(_pattern_of_piece(piece, groups) for piece in _PIECE.split(text.strip()))


def _pattern_of_piece(piece: str, groups: dict[str, str]) -> str:
    if piece.isspace():
        return r"\s*"
    if piece == NUMBER:
        return r"\d{1,9}"
    if piece == CALL_ID:
        return r"(?P<id>[^\s<>{}]{0,128})"
    if piece.startswith("{") and piece[1:-1] in groups:
        return groups[piece[1:-1]]
    if piece.startswith('"{') and piece[2:-2] in groups:
        return f"[\"']?{groups[piece[2:-2]]}[\"']?"
    return re.escape(piece)
