"""The record of a format of tool calls, and the contract of the parsers of its sections."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from lmwire_protocol import Tool


class ToolCallFragment(Struct, frozen=True):
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

    def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list[ToolCallFragment], str]:
        """End the section.

        Args:
            closed: The end marker came, or the model ended its turn and the format has no end marker. In some formats,
                only this distinguishes a complete call from the beginning of one.
            marked: The end marker came. Only then may the section's end stand for a missing end in the last argument: a
                model that ends its turn inside an argument has not finished it.

        Returns:
            The last fragments, with `complete` set for each call, and the text outside complete calls. The text is
            empty if all calls are complete. White space and punctuation between complete calls is not part of it.
        """
        ...


class WrittenCall(Struct, frozen=True):
    """A past call, to be written into the prompt."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str = ""


class CallShape(Protocol):
    """The shape of one call: its texts, from which the parser and the grammar are derived too."""

    def make_parser(self, tools: Sequence[Tool]) -> ToolCallParser:
        """Return a parser of one section, for the request's tools."""
        ...

    def write(self, call: WrittenCall, index: int) -> str:
        """Return the text of a call.

        Args:
            call: The call.
            index: The number of the call in its turn, from 0.
        """
        ...


class ToolFormat(Struct, frozen=True):
    """A format of tool calls: one record, from which parser, grammar and written calls are derived.

    A section starts with the marker `start` and ends with the marker `end`, or with the turn if `end` is empty. If the
    turn ends without the end marker, complete calls in the section still count.
    """

    name: str
    start: str
    end: str
    shape: CallShape
    """The form of a call between the markers."""
    before: str = ""
    """Text between the start marker and the first call."""
    between_calls: str | None = None
    """Text between two calls of a section; None if a section has one call."""
    after: str = ""
    """Text between the last call and the end marker."""
    between_sections: str | None = None
    """Text between two sections; None if an answer has one section."""
    bare: bool = False
    """True if a section at the start of the content may lack its start marker. A parser then receives the content from
    its first character on, until it is abandoned or the turn ends."""
    lost_starts: tuple[str, ...] = ()
    """Texts that start a call without the start marker, as some models write it. A call of a function that the request
    does not offer stays text."""
    other_calls: tuple[tuple[str, CallShape], ...] = ()
    """Start markers and shapes of other forms in which the model may write a section of one call."""
    stray: tuple[str, ...] = ()
    """Markers that some models write beside calls, or around results of their own. They are not text."""
    models: str = ""
    """Models that write calls so, for documents and listings."""
    ends_reasoning: bool = False
    """True if a call in reasoning ends it, with or without a marker. Otherwise, only a call in reasoning that never
    closes is a call: another one is quoted."""

    def make_parser(self, tools: Sequence[Tool], *, lost_start: bool = False) -> ToolCallParser:
        """Return a parser of one section.

        Args:
            tools: The request's tools.
            lost_start: The section began without its start marker; see `lost_starts`.
        """
        parser = self.shape.make_parser(tools)
        if not lost_start:
            return parser
        markers = tuple(text for text in self.lost_starts if not self._call_start.startswith(text))
        return _LostStart(parser, {tool.function.name for tool in tools}, markers)

    @property
    def calls_may_start(self) -> bool:
        """Return whether a call without the section's start marker may begin the section."""
        return self._call_start.startswith(self.lost_starts)

    @property
    def _call_start(self) -> str:
        return self.shape.write(WrittenCall("f", {}), 0)

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """Return the text of a turn's calls, with their markers."""
        texts = [self.shape.write(call, index) for index, call in enumerate(calls)]
        if self.between_calls is not None:
            texts = [self.between_calls.join(texts)]
        sections = [f"{self.start}{self.before}{text}{self.after}{self.end}" for text in texts]
        return (self.between_sections or "").join(sections)


class _LostStart:
    """A parser of a section without its start marker: it is one only if it starts with a call of an offered function.

    Args:
        parser: The parser of the section.
        names: The names of the offered functions.
        markers: Texts that may start the section without being part of a call.
    """

    longest_head = 1024
    """Maximum number of characters before a call's name is known."""

    def __init__(self, parser: ToolCallParser, names: set[str], markers: tuple[str, ...]) -> None:
        self.is_abandoned = False
        self._markers = markers
        self._parser = parser
        self._names = names
        self._text = ""
        self._is_certain = False

    def push(self, text: str) -> list[ToolCallFragment]:
        """Add text; see `ToolCallParser.push`."""
        if not self._text and text in self._markers:
            self._text = text
            return []
        pieces = self._parser.push(text)
        if self._is_certain:
            self.is_abandoned = self._parser.is_abandoned
            return pieces
        self._text += text
        if pieces:
            self._is_certain = pieces[0].name in self._names
            self.is_abandoned = self._parser.is_abandoned or not self._is_certain
        else:
            self.is_abandoned = self._parser.is_abandoned or len(self._text) > self.longest_head
        return pieces if self._is_certain else []

    def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list[ToolCallFragment], str]:
        """End the section; see `ToolCallParser.end`."""
        pieces, rest = self._parser.end(closed, marked=marked)
        if self._is_certain or (not self.is_abandoned and pieces and pieces[0].name in self._names):
            return pieces, rest
        return [], self._text
