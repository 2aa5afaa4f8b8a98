"""How a case fails."""

from typing import Final

from ..violation import Violation

_QUOTED: Final = 300


class CaseFailure(Violation):
    """The host did not do what it should.

    Args:
        expected: what should have come, as a sentence or a line.
        seen: what came instead.
        rules: those that are broken; none for those of the case.
    """

    def __init__(self, expected: str, seen: str, *rules: str) -> None:
        super().__init__(rules, expected, seen)


class WorkerEnded(CaseFailure):
    """The host has ended the worker that the kit plays. Some cases wait for that.

    Args:
        expected: what the worker was told to do, or to wait for.
    """

    def __init__(self, expected: str) -> None:
        super().__init__(expected, "the host ended the worker")


class Inconclusive(CaseFailure):
    """The host gave up, as it was asked to, before the worker was up: nothing is proved, for the machine is slow."""


def quote(data: bytes | str) -> str:
    """A line for a report, its middle left out when it is long."""
    text = data.decode(errors="backslashreplace") if isinstance(data, bytes) else data
    text = text.rstrip("\n")
    if len(text) > _QUOTED:
        text = f"{text[: _QUOTED // 2]} … {text[-_QUOTED // 2 :]} ({len(text)} characters)"
    return text
