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

    @property
    def lost(self) -> bool:
        """Whether this is no section: no call can come of the text any more.

        Only a bare section can be lost. `end` may be called at once; what it returns, and all text after it, is text.
        """
        ...

    def push(self, text: str) -> list[CallText]:
        """Takes the next text of the section."""
        ...

    def end(self, closed: bool = True) -> tuple[list[CallText], str]:
        """The section is over, or was cut off.

        Args:
            closed: The end marker came, or the model ended its turn where the format has none. In some formats the
                beginning of a call reads like a whole one: only this tells them apart.

        Returns the last pieces, each call's last one being marked complete or not, and the section's text that is in
        no whole call: empty when all calls were whole, and all of the text when none was. Only space and punctuation
        between whole calls may be left out of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """One way to write tool calls.

    A section begins with the marker `start` and ends with the marker `end`, or with the turn when `end` is empty. A
    section whose end marker is missing because the turn is over is still read: what is whole in it counts.
    """

    name: str
    """mlx-lm's name of its parser where it has one."""
    start: str
    end: str
    reader: Callable[[Sequence[Tool]], CallReader]
    """What reads one section, given the request's tools (for the types of their parameters)."""
    bare: bool = False
    """A section may lack its start marker where it opens the answer (the content, after its thought): a reader is given
    the answer from its first character on, and stays at it until it is `lost` or the turn is over."""
