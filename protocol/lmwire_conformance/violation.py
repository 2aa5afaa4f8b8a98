"""The one exception of the kit: somebody broke the protocol."""

_SHOWN = 2000


class Violation(Exception):
    """A rule was broken.

    Args:
        rules: which, as `F-12`; `#cancel` is a sentence under that heading of PROTOCOL.md. None where only the
            transcript knows.
        expected: what should have come: a line, or a sentence.
        seen: what came instead.
    """

    def __init__(self, rules: tuple[str, ...], expected: str, seen: str | bytes) -> None:
        self.rules = rules
        self.expected = shown(expected)
        self.seen = shown(seen)
        super().__init__(f"{' '.join(rules)}: expected {self.expected}, seen {self.seen}")


def shown(text: str | bytes) -> str:
    """A line for a report: readable, and not longer than a person reads."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
