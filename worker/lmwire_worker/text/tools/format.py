"""How a family of models writes tool calls: what the table of formats holds, and what reads a call as it comes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lmwire_protocol import Tool


@dataclass(frozen=True, slots=True)
class CallText:
    """A tool call, or a piece of one. The pieces of one call come in order and share their index."""

    index: int
    """Which call of the section it is, from 0."""
    call_id: str | None = None
    """In the first piece, when the model gives its calls names of their own."""
    name: str | None = None
    """The function's name; in the first piece."""
    arguments: str = ""
    """The next piece of the arguments' JSON text."""
    complete: bool | None = None
    """In the last piece: whether the pieces make a whole call."""


class CallReader(Protocol):
    """Reads one section: the text between a pair of markers. Never raises, whatever the text is."""

    def push(self, text: str) -> list[CallText]:
        """Takes the next text of the section."""
        ...

    def end(self) -> tuple[list[CallText], str]:
        """The section is over, or was cut off.

        Returns the last pieces, each call's last one being marked complete or not, and the section's text that is in
        no whole call: empty when all calls were whole, and all of the text when none was. Only space and punctuation
        between whole calls may be left out of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """One way to write tool calls.

    A section begins with the marker `start` and ends with the marker `end`, or with the turn when `end` is empty.
    """

    name: str
    """mlx-lm's name of its parser where it has one."""
    start: str
    end: str
    reader: Callable[[Sequence[Tool]], CallReader]
    """What reads one section, given the request's tools (for the types of their parameters)."""
    bare: bool = False
    """There is no marker: an answer that opens with `start` (as `{"name":`, after white space) is a section as long as
    it can be read as a call of one of the tools."""
