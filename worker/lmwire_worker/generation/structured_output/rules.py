"""A Lark grammar in the making."""

import json
import re
from collections.abc import Sequence
from typing import Any

from .formats import json_rule
from .vocabulary import Vocabulary

Item = tuple[str, bool]
"""An expression, and whether it must be there."""


class Rules:
    """Collects rules and terminals under names that it makes up. An expression is what stands right of a colon."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._lines: list[str] = []

    def rule(self, expression: str, attributes: str = "") -> str:
        """Gives an expression a name."""
        name = f"r{len(self._lines)}"
        self._lines.append(f"{name}{attributes}: {expression}")
        return name

    def terminal(self, expression: str) -> str:
        """Gives a regular expression a name."""
        name = f"T{len(self._lines)}"
        self._lines.append(f"{name}: {expression}")
        return name

    def grammar(self, start: str) -> str:
        """The grammar whose start is an expression."""
        return "\n".join([f"start: {start}", *self._lines])

    def literal(self, text: str) -> str:
        """An expression for fixed text, which may hold special tokens."""
        return self._vocabulary.literal(text)

    def json(self, schema: dict[str, Any], **options: Any) -> str:
        """A rule for compact JSON that a schema holds for."""
        return self.rule(json_rule(schema, **options))

    def text_until(self, marker: str, allowed: str = "/(?s:.*)/") -> str:
        """A rule for text that ends at a marker, with the marker.

        Args:
            marker: Fixed text, which may hold special tokens.
            allowed: A terminal's expression for the text.
        """
        text, special = self.terminal(allowed), self._vocabulary.special_in(marker)
        if special is None:
            return self.rule(f"{text} {quoted(marker)}", "[lazy]")
        head, _, rest = marker.partition(special)
        if head:
            text = self.terminal(f"{text} {quoted(head)}")
        return self.rule(f"{text} {self.literal(special + rest)}")

    def text_without(self, markers: Sequence[str]) -> str:
        """A terminal for text that holds none of the markers."""
        return self.terminal(f"/(?s:.*)/{excluding(markers)}")

    def sequence(self, items: Sequence[Item], separator: str) -> str:
        """A rule for the items in their order, the optional ones there or not, with a separator between any two."""
        between = self.literal(separator)
        first = following = '""'
        for expression, required in reversed(items):
            alternatives = f"{expression} {following}", f"{between} {expression} {following}"
            first, following = (
                self.rule(alternative if required else f"{alternative} | {rest}")
                for alternative, rest in zip(alternatives, (first, following), strict=True)
            )
        return first


def excluding(markers: Sequence[str]) -> str:
    """What makes a terminal's expression one that holds none of the markers."""
    return f" & ~/(?s:.*)({'|'.join(map(pattern, markers))})(?s:.*)/" if markers else ""


def pattern(text: str) -> str:
    """A regular expression of Lark for fixed text."""
    return re.escape(text).replace("/", "\\/").replace("\n", "n")


def quoted(text: str) -> str:
    """A string of Lark, or of JSON."""
    return json.dumps(text, ensure_ascii=False)
