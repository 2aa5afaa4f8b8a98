"""Build a Lark grammar rule by rule."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from .formats import json_rule
from .vocabulary import Vocabulary

_LINE_BREAKS: Final = re.compile(r"( *\n[ \n]*)")
MOST_SPACES: Final = 2
"""Maximum number of characters in place of a single line break."""

Item = tuple[str, bool]
"""An expression, and whether it is required."""


class LarkRules:
    """Collects rules and terminals under generated names. An expression is the right side of a rule.

    Args:
        vocabulary: The model's vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._lines: list[str] = []

    def rule(self, expression: str, attributes: str = "") -> str:
        """Add a rule, and return its name.

        Args:
            expression: The rule's expression.
            attributes: The rule's attributes, such as `[lazy]`.
        """
        name = f"r{len(self._lines)}"
        self._lines.append(f"{name}{attributes}: {expression}")
        return name

    def terminal(self, expression: str) -> str:
        """Add a terminal for a regular expression, and return its name."""
        name = f"T{len(self._lines)}"
        self._lines.append(f"{name}: {expression}")
        return name

    def grammar(self, start: str) -> str:
        """Return the grammar that starts with an expression."""
        return "\n".join([f"start: {start}", *self._lines])

    def literal(self, text: str) -> str:
        """Return an expression for fixed text, which may contain special tokens."""
        return self._vocabulary.literal(text)

    def fixed(self, text: str) -> str:
        """Return an expression for fixed text in which line breaks, with the spaces around them, may be missing.

        Models differ from their templates in these, and parsers do not need them.
        """
        parts = _LINE_BREAKS.split(text)
        return " ".join(
            self.spaces(max(len(part), MOST_SPACES)) if part.isspace() else self.literal(part) for part in parts if part
        )

    def spaces(self, most: int) -> str:
        """Add a terminal for white space of at most `most` characters, and return its name."""
        return self.terminal(rf"/[ \n]{{0,{most}}}/")

    def json(self, schema: dict[str, Any], **options: Any) -> str:
        """Add a rule for compact JSON that is valid under a schema, and return its name.

        Args:
            schema: The schema.
            **options: Options of llguidance's JSON grammars.
        """
        return self.rule(json_rule(schema, **options))

    def text_until(self, marker: str, allowed: str = "/(?s:.*)/") -> str:
        """Add a rule for text up to and including a marker, and return its name.

        Args:
            marker: Fixed text, which may contain special tokens.
            allowed: A terminal's expression for the text.
        """
        text, special = self.terminal(allowed), self._vocabulary.find_special_token(marker)
        if special is None:
            return self.rule(f"{text} {quoted(marker)}", "[lazy]")
        head, _, rest = marker.partition(special)
        if head:
            text = self.terminal(f"{text} {quoted(head)}")
        return self.rule(f"{text} {self.literal(special + rest)}")

    def text_without(self, markers: Sequence[str]) -> str:
        """Add a terminal for text without the markers, and return its name."""
        return self.terminal(f"/(?s:.*)/{excluding(markers)}")

    def sequence(self, items: Sequence[Item], separator: str) -> str:
        """Add a rule for items in order, and return its name. Optional items may be missing.

        Args:
            items: The items.
            separator: The text between two items.
        """
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
    """Return the end of a terminal's expression that excludes text with any of the markers."""
    return f" & ~/(?s:.*)({'|'.join(map(pattern, markers))})(?s:.*)/" if markers else ""


def pattern(text: str) -> str:
    """Return a regular expression of Lark for fixed text."""
    return re.escape(text).replace("/", "\\/").replace("\n", "n")


def quoted(text: str) -> str:
    """Return text as a string literal of Lark and JSON."""
    return json.dumps(text, ensure_ascii=False)
