"""The contract of tool parsers: the description of a format, and the parser of one section of calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lmwire_protocol import Tool


@dataclass(frozen=True, slots=True)
class ToolCallFragment:
    """A part of a tool call, or all of it. The fragments of one call come in order and share their index."""

    index: int
    """Index of the call in its section, from 0."""
    call_id: str | None = None
    """Id that the model gave the call, if any; in the first fragment."""
    name: str | None = None
    """Name of the function; in the first fragment."""
    arguments: str = ""
    """The next part of the arguments' JSON text."""
    complete: bool | None = None
    """True if the fragments are a complete call, and False if the call is invalid; in the last fragment."""


class ToolCallParser(Protocol):
    """Parses one section: the text between a pair of markers. Never raises, for any text."""

    @property
    def is_abandoned(self) -> bool:
        """Return whether the text is not a section of calls after all.

        Only a section without a start marker can be abandoned. The caller calls `end` at once. The text that it
        returns, and all text after it, is text of the answer.
        """
        ...

    def push(self, text: str) -> list[ToolCallFragment]:
        """Add text of the section, and return the fragments of calls that became certain."""
        ...

    def end(self, closed: bool = True) -> tuple[list[ToolCallFragment], str]:
        """End the section.

        Args:
            closed: The end marker came, or the model ended its turn and the format has no end marker. In some formats,
                only this distinguishes a complete call from the beginning of one.

        Returns:
            The last fragments, with `complete` set for each call, and the text outside complete calls. The text is
            empty if all calls are complete. White space and punctuation between complete calls is not part of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A format of tool calls.

    A section starts with the marker `start` and ends with the marker `end`, or with the turn if `end` is empty. If the
    turn ends without the end marker, complete calls in the section still count.
    """

    name: str
    """Name of mlx-lm's parser of the format, if it has one."""
    start: str
    end: str
    make_parser: Callable[[Sequence[Tool]], ToolCallParser]
    """Returns a parser of one section, for the request's tools."""
    bare: bool = False
    """True if a section at the start of the content may lack its start marker. A parser then receives the content from
    its first character on, until it is abandoned or the turn ends."""
