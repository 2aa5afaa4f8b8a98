"""The exception of the kit: a worker or a host broke the protocol."""

import traceback
from pathlib import Path

_SHOWN = 2000


class Violation(Exception):
    """A rule was broken.

    Args:
        rules: The broken rules, such as `F-12`. `#cancel` means a sentence under that heading of PROTOCOL.md. Empty if
            only the transcript knows.
        expected: The expected line, or a sentence that describes it.
        seen: What came instead.
    """

    def __init__(self, rules: tuple[str, ...], expected: str, seen: str | bytes) -> None:
        self.rules = rules
        self.expected = printable(expected)
        self.seen = printable(seen)
        super().__init__(f"{' '.join(rules)}: expected {self.expected}, seen {self.seen}")


def printable(text: str | bytes) -> str:
    """Return a line for a report: no longer than a person reads, and without what a terminal or XML takes amiss.

    Characters that show nothing are named, as `<U+2028>`: written as JSON escapes them, they would look right.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    start = "".join(char if char.isprintable() or char in "\n\t" else f"<U+{ord(char):04X}>" for char in text[:_SHOWN])
    return start if len(text) <= _SHOWN else f"{start}… ({len(text)} characters)"


def kit_defect(error: Exception) -> "Violation":
    """Return an error within the kit as the failure of a case, so that the other cases are still played."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    why = f"{type(error).__name__}: {error}, at {where.name} in {Path(where.filename).name}:{where.lineno}"
    return Violation((), "output that the kit can judge; please report this defect of the kit", why)
