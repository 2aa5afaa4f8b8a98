"""The failures of a case."""

from typing import Final

from ..violation import Violation

_QUOTED_CHARACTERS: Final = 300


class CaseFailure(Violation):
    """The host did not do what the case expects.

    Args:
        expected: The expected line, or a sentence that describes it.
        seen: What came instead.
        rules: The broken rules, if they are not those of the case.
    """

    def __init__(self, expected: str, seen: str, *rules: str) -> None:
        super().__init__(rules, expected, seen)


class WorkerEnded(CaseFailure):
    """The host ended the worker that the kit plays. Some cases wait for that.

    Args:
        expected: What the worker was about to do or to wait for.
    """

    def __init__(self, expected: str) -> None:
        super().__init__(expected, "the host ended the worker")


class DriverExited(CaseFailure):
    """The driver exited before its stdin ended."""


class Inconclusive(CaseFailure):
    """The host's time for something passed before the kit's part was done: a slow machine, which proves nothing."""


def quote(data: bytes | str) -> str:
    """Return a line for a report. The middle of a long line is left out."""
    text = data.decode(errors="backslashreplace") if isinstance(data, bytes) else data
    text = text.rstrip("\n")
    if len(text) > _QUOTED_CHARACTERS:
        text = f"{text[: _QUOTED_CHARACTERS // 2]} … {text[-_QUOTED_CHARACTERS // 2 :]} ({len(text)} characters)"
    return text
