"""One answer, told apart as it comes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lmwire_protocol import Tool
from lmwire_protocol.events import Channel

from ..text_stream.string_matcher import Scanner
from ..tool_parsers import CallText
from .section import Section
from .states import BARE_CALL, CONTENT, REASONING
from .syntax import Syntax


@dataclass(slots=True)
class Text:
    """Text of an answer, without markers."""

    channel: Channel
    text: str
    call: bool = False
    """Whether it is a call that was cut off, or one that the host was told of and that is none."""
    end: int = field(default=0, compare=False)
    """Where it ends in all that was pushed, in characters."""


class Answer:
    """One choice's answer.

    Args:
        syntax: The model's.
        state: Where the answer starts; see `Syntax.start_state`.
        tools: What the model may call.
        reads_calls: Whether calls are told apart. If not, they are text, markers included.
    """

    def __init__(self, syntax: Syntax, state: str, tools: Sequence[Tool], reads_calls: bool) -> None:
        self.calls = 0
        """Whole calls so far."""
        self._given = 0
        """Calls that the host was told of, whole or not."""
        self._syntax = syntax
        self._format = syntax.tools if reads_calls else None
        self._tools = tools
        self._opens = True
        """There was no content yet, so that a call may lack its start marker."""
        self._markup = ""
        """Of the header at hand, up to its last marker."""
        self._header = ""
        """And the text behind that."""
        self._seen = self._at = 0
        """Characters so far, and where what is said next ends among them."""
        self._section: Section | None = None
        self._taken_back = False
        """What is said until the next text comes is what the host was told was a call."""
        self._parts: list[Text | CallText] = []
        self._enter(state)

    @property
    def channel(self) -> Channel:
        """Whose text is next. A call counts as content."""
        return "content" if self._section is not None else self._state.channel

    def push(self, text: str) -> list[Text | CallText]:
        """Takes the answer's next text; returns what became certain with it."""
        self._seen += len(text)
        while text:
            scanner = self._scanner
            before, marker = scanner.push(text)
            self._at = self._seen - len(scanner.rest) - (scanner.held if marker is None else len(marker))
            self._take(before)
            if self._section is not None and self._section.lost:
                text = self._lose(self._section) + (marker or scanner.flush()) + scanner.rest
                continue
            text = scanner.rest
            if marker is not None:
                self._at = self._seen - len(text)
                self._turn(marker)
        return self._hand_over()

    def end(self, finished: bool) -> list[Text | CallText]:
        """Returns what was held back of an answer that ends here.

        Args:
            finished: The model ended its turn; otherwise the answer was cut off.
        """
        held = self._scanner.flush()
        self._at = self._seen
        if self._section is not None:
            self._close(self._section, held, finished, cut=not finished)
        else:
            self._take(held)
        self._say(self._state.channel, self._header)
        return self._hand_over()

    def _take(self, text: str) -> None:
        """Takes text up to a marker."""
        if self._section is not None:
            self._add(self._section.push(text))
        elif self._state.kind == "header":
            self._header += text
        else:
            self._say(self._state.channel, text)

    def _lose(self, section: Section) -> str:
        """Gives up a section; returns its text, in which thoughts and calls are to be found yet."""
        self._section = None
        pieces, text = section.end(closed=False)
        self._add(pieces)
        self._taken_back = section.taken_back
        self._at -= len(text)
        self._say(self._state.channel, section.opened)
        self._go(self._state.channel)
        return text

    def _turn(self, marker: str) -> None:
        """Goes on behind a marker."""
        state, section = self._state, self._section
        target = state.edges[marker]
        kind = self._syntax.states[target].kind
        markup = self._markup + self._header + marker
        self._markup = self._header = ""
        if section is not None:
            self._close(section, marker, closed=True)
            if state.channel == REASONING and not section.whole:
                target = REASONING
        elif kind == "call" and self._format is None:
            target = self._syntax.without_call(self._name)
            self._say(self._syntax.states[target].channel, markup)
        elif kind == "call" or (kind == state.kind == "header"):
            self._markup = markup
        self._enter(target)

    def _enter(self, name: str) -> None:
        if name == CONTENT and self._opens and self._format is not None and self._format.bare:
            name = BARE_CALL
        self._go(name)
        if self._state.kind == "call" and self._format is not None:
            self._section = Section(self._format.reader(self._tools), self._markup, self._given)
            self._markup = ""

    def _go(self, name: str) -> None:
        self._name = name
        self._state = self._syntax.states[name]
        self._scanner = Scanner(self._state.markers)

    def _close(self, section: Section, marker: str, closed: bool, cut: bool = False) -> None:
        """Ends the section at its end marker, or at what there is of it; what is no whole call in it is text again."""
        self._section = None
        pieces, text = section.end(closed)
        self._add(pieces)
        if text or not section.whole:
            channel = "content" if section.whole else self._state.channel
            self._say(channel, section.opened + text + marker, call=cut or section.taken_back)

    def _add(self, pieces: Sequence[CallText]) -> None:
        self._parts += pieces
        self._given += sum(piece.name is not None for piece in pieces)
        self.calls += sum(piece.complete is True for piece in pieces)

    def _say(self, channel: Channel, text: str, *, call: bool = False) -> None:
        if not text:
            return
        call = call or (self._taken_back and channel == "content")
        if channel == "content" and not text.isspace():
            self._opens = False
        last = self._parts[-1] if self._parts else None
        if isinstance(last, Text) and (last.channel, last.call) == (channel, call):
            last.text += text
            last.end = self._at
        else:
            self._parts.append(Text(channel, text, call, self._at))

    def _hand_over(self) -> list[Text | CallText]:
        parts, self._parts = self._parts, []
        self._taken_back = False
        return parts
