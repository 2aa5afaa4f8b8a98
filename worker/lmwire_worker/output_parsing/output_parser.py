"""The parser of one answer, which separates content, reasoning and tool calls as they come."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lmwire_protocol import Tool
from lmwire_protocol.events import Channel

from ..text_stream.string_matcher import StringMatcher
from ..tool_parsers import ToolCallFragment, WholeJsonParser
from .states import BARE_CALL, CONTENT, REASONING, UNCLOSED
from .syntax import Syntax
from .tool_call_section import ToolCallSection, UnreadSection


@dataclass(slots=True)
class TextFragment:
    """A part of an answer's text, without markers."""

    channel: Channel
    text: str
    call: bool = False
    """True for the text of a call that was cut off, or that was reported to the host and proved invalid."""
    end: int = field(default=0, compare=False)
    """End of the fragment in the text of all pushes, in characters."""


class OutputParser:
    """Parses the answer of one choice.

    Args:
        syntax: The model's syntax.
        state: The initial state; see `start_state`.
        tools: The tools that the model may call.
        parses_calls: Parse tool calls. Otherwise, calls and their markers are text.
        drops_space: Drop white space before the content, because the content has a format.
    """

    def __init__(
        self, syntax: Syntax, state: str, tools: Sequence[Tool], parses_calls: bool, *, drops_space: bool = False
    ) -> None:
        self.calls = 0
        """Number of complete calls so far."""
        self._started_calls = 0
        """Number of calls that were reported to the host, complete or not."""
        self._syntax = syntax
        self._format = syntax.tools if parses_calls else None
        self._tools = tools
        self._has_content = False
        """True once there is content. Before that, a call may lack its start marker, and another end marker of
        reasoning is not text."""
        self._markup = ""
        """The current header, up to its last marker."""
        self._header = ""
        """The current header's text after its last marker."""
        self._length = self._text_end = 0
        """Number of characters so far, and the end of the next fragment among them."""
        self._section: ToolCallSection | None = None
        self._retracted = False
        """True until the next push: the text is that of a call that was reported to the host."""
        self._quoted: list[str] = []
        """Reasoning from a call on, which proves to be a call if the reasoning never closes."""
        self._is_unclosed = False
        """True once the answer has ended inside reasoning, so that calls in it are calls."""
        self._space = ""
        """White space after a call, which is dropped if another call or the end follows."""
        self._follows_call = False
        self._drops_space = drops_space
        """True until there is content: white space is not part of it."""
        self._fragments: list[TextFragment | ToolCallFragment] = []
        self._enter(state)

    @property
    def channel(self) -> Channel:
        """Channel of the next text. A call counts as content."""
        return "content" if self._section is not None else self._state.channel

    def push(self, text: str) -> list[TextFragment | ToolCallFragment]:
        """Add text of the answer, and return the fragments that became certain."""
        self._length += len(text)
        self._scan(text)
        return self._take_fragments()

    def _scan(self, text: str) -> None:
        """Parse the newest text."""
        while text:
            scanner = self._scanner
            before, marker = scanner.push(text)
            if marker is None and self._state.is_plain:  # nearly every token
                self._text_end = self._length - scanner.held
                self._add_text(self._state.channel, before)
                return
            self._text_end = self._length - len(scanner.rest) - (scanner.held if marker is None else len(marker))
            if before and self._state.otherwise:
                text = before + (marker or scanner.flush()) + scanner.rest
                self._set_state(self._state.otherwise)
                continue
            self._take_text(before)
            if self._section is not None and self._section.is_abandoned:
                text = self._abandon_section(self._section) + (marker or scanner.flush()) + scanner.rest
                continue
            text = scanner.rest
            if marker is not None:
                self._release_quoted()
                self._text_end = self._length - len(text)
                self._transition(marker)

    def end(self, finished: bool) -> list[TextFragment | ToolCallFragment]:
        """Return the remaining fragments, at the end of the answer.

        Args:
            finished: The model ended its turn. Otherwise, the answer was cut off.
        """
        held = self._scanner.flush()
        self._text_end = self._length
        while self._state.kind == "quoted":
            held = self._read_quoted(held)
        if self._section is not None:
            self._close_section(self._section, held, finished, cut=not finished)
        else:
            self._take_text(held)
        self._add_text(self._state.channel, self._header)
        return self._take_fragments()

    def _read_quoted(self, held: str) -> str:
        """Read the calls of reasoning that never closed. Return the text that the scanner holds after that."""
        text = "".join(self._quoted) + held
        self._quoted.clear()
        self._is_unclosed = True
        self._set_state(UNCLOSED)
        self._scan(text)
        held = self._scanner.flush()
        self._text_end = self._length
        return held

    def _release_quoted(self) -> None:
        """Add reasoning with a call in it, after it was closed."""
        self._add_text(REASONING, "".join(self._quoted))
        self._quoted.clear()

    def _take_text(self, text: str) -> None:
        """Add text before a marker."""
        if self._section is not None:
            self._add_calls(self._section.push(text))
        elif self._state.kind == "header":
            self._header += text
        elif self._state.kind == "quoted":
            self._quoted.append(text)
        else:
            self._add_text(self._state.channel, text)

    def _abandon_section(self, section: ToolCallSection) -> str:
        """Abandon a section, and return its text, which may contain other markers."""
        self._section = None
        pieces, text = section.end(closed=False, marked=False)
        self._add_calls(pieces)
        self._retracted = section.has_retracted
        self._text_end -= len(text)
        self._add_text(self._state.channel, section.start_markup)
        self._set_state(self._state.channel)
        return text

    def _transition(self, marker: str) -> None:
        """Change the state after a marker."""
        state, section = self._state, self._section
        target = state.transitions[marker]
        kind = self._syntax.states[target].kind
        markup = self._markup + self._header + marker
        self._markup = self._header = ""
        if section is not None:
            self._close_section(section, marker, closed=True, marked=True)
            if state.channel == REASONING and not section.complete_calls:
                target = UNCLOSED if self._is_unclosed else REASONING
        elif kind in ("call", "quoted") and self._format is None and state.kind != "header":
            target = self._syntax.without_call(self._name)
            self._add_text(self._syntax.states[target].channel, markup)
        elif self._format is None and self._syntax.tools is not None and marker in self._syntax.tools.stray:
            self._add_text(state.channel, markup)
        elif marker in state.late_ends and self._has_content:
            self._add_text(CONTENT, markup)
        elif kind == "quoted":
            self._quoted = [markup]
        elif kind == "call" or (kind == state.kind == "header"):
            self._markup = markup
        self._enter(target, follows_reasoning=marker in state.late_ends)

    def _enter(self, name: str, *, follows_reasoning: bool = False) -> None:
        if name == CONTENT and self._may_be_call(follows_reasoning):
            name = BARE_CALL
        self._set_state(name)
        if self._state.kind == "call":
            has_markup = self._state.has_markup
            if self._format is None:
                parser = UnreadSection()
            elif name == BARE_CALL and not self._format.bare:
                parser = WholeJsonParser(self._tools)
            else:
                parser = self._format.make_parser(self._tools, lost_start=has_markup)
            self._section = ToolCallSection(parser, self._markup, self._started_calls, has_markup=has_markup)
            self._markup = ""
            self._add_calls(self._section.first_fragments)

    def _may_be_call(self, follows_reasoning: bool) -> bool:
        """Return whether content may be a call without a marker, in the model's format or in JSON.

        Args:
            follows_reasoning: The content follows an end marker of reasoning.
        """
        if self._format is None or BARE_CALL not in self._syntax.states:
            return False
        if self._has_content:
            return self._format.bare and follows_reasoning
        return self._format.bare or bool(self._tools)

    def _set_state(self, name: str) -> None:
        self._name = name
        self._state = self._syntax.states[name]
        self._scanner = StringMatcher(self._state.markers)

    def _close_section(
        self, section: ToolCallSection, marker: str, closed: bool, *, cut: bool = False, marked: bool = False
    ) -> None:
        """End a section. Text in it that is not part of a complete call becomes text of the answer.

        Args:
            section: The section.
            marker: The end marker, or the part of it that came.
            closed: The section ended with its marker, or with the model's turn.
            cut: The answer was cut off.
            marked: The section ended with its marker.
        """
        self._section = None
        pieces, text = section.end(closed, marked=marked)
        self._add_calls(pieces)
        if section.complete_calls:
            self._follows_call, self._space = True, ""
        if self._add_other_message(section, text):
            return
        if text or not section.complete_calls:
            channel = "content" if section.complete_calls else self._state.channel
            is_call = self._format is not None and (cut or section.has_retracted)
            if self._format is None and marker in self._syntax.states[CONTENT].transitions:
                marker = ""
            follows = bool(section.complete_calls and self._format and not self._format.end)
            self._add_text(channel, ("" if follows else section.start_markup) + text + marker, call=is_call)

    def _add_other_message(self, section: ToolCallSection, text: str) -> bool:
        """Add the body of a section if it is a message to another recipient than a function; return whether it is."""
        header = self._state.other_header and self._state.other_header.match(text)
        names = {tool.function.name for tool in self._tools}
        if not header or section.complete_calls or section.has_retracted or header["recipient"] in names:
            return False
        is_final = "<|channel|>final" in section.start_markup + header[0]
        self._add_text(CONTENT if is_final else REASONING, text[header.end() :])
        return True

    def _add_calls(self, pieces: Sequence[ToolCallFragment]) -> None:
        self._fragments += pieces
        self._started_calls += sum(piece.name is not None for piece in pieces)
        self.calls += sum(piece.complete is True for piece in pieces)

    def _add_text(self, channel: Channel, text: str, *, call: bool = False) -> None:
        if not text:
            return
        call = call or (self._retracted and channel == "content")
        if self._follows_call and channel == "content":
            text, self._space = self._space + text, ""
            if text.isspace():
                self._space = text
                return
            self._follows_call = False
        if self._drops_space and channel == "content":
            text = text.lstrip()
            if not text:
                return
            self._drops_space = False
        if channel == "content" and not self._has_content:
            self._has_content = not text.isspace()
        last = self._fragments[-1] if self._fragments else None
        if isinstance(last, TextFragment) and (last.channel, last.call) == (channel, call):
            last.text += text
            last.end = self._text_end
        else:
            self._fragments.append(TextFragment(channel, text, call, self._text_end))

    def _take_fragments(self) -> list[TextFragment | ToolCallFragment]:
        parts, self._fragments = self._fragments, []
        self._retracted = False
        return parts


def start_state(syntax: Syntax, opening: str) -> str:
    """Return the name of an answer's first state: `CONTENT`, `REASONING`, or the state of a message's header.

    Args:
        syntax: The model's syntax.
        opening: The part of the assistant's turn that the prompt contains, from the template and any prefix.
    """
    name, rest = syntax.initial, opening
    while True:
        scanner = StringMatcher(syntax.states[name].markers)
        _, marker = scanner.push(rest)
        if marker is None:
            return (rest and syntax.states[name].otherwise) or name
        target = syntax.states[name].transitions[marker]
        name = syntax.without_call(name) if syntax.states[target].kind in ("call", "quoted") else target
        rest = scanner.rest
