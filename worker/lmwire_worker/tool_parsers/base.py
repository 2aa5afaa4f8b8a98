"""The base of the tool parsers: the section's text, the fragments of its calls, and the text outside them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from lmwire_protocol import Tool
from lmwire_protocol.imports import lazy_pattern

from .format import ToolCallFragment
from .objects import read_object, write_value

Fragments = Iterator[ToolCallFragment | None]
"""The output of a parser's generator: fragments of calls, and None to wait for more text."""


class GeneratorParser(ABC):
    """Parses a section with one generator, which resumes whenever text comes.

    The generator yields None to wait for text. It resumes once more at the end of the section, when no more text comes.

    Args:
        tools: The request's tools.
    """

    separators: re.Pattern[str] = lazy_pattern(r"[\s,;\[\]]*")
    """Text between complete calls that has no meaning."""

    closing: re.Pattern[str] = lazy_pattern("")
    """Text after the last call that belongs to the section, such as the end of a list."""

    trigger: str
    """The last characters of the patterns that `find` waits for. Without one of them, a search cannot succeed."""

    is_abandoned = False

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = {tool.function.name: tool.function for tool in tools}
        self.text = ""
        self.is_over = False
        self.is_closed = self.is_marked = False
        self._calls = 0
        self._arguments: list[str] | None = None
        self._complete_spans: list[tuple[int, int]] = []
        self._generator = self.parse()

    @abstractmethod
    def parse(self) -> Fragments:
        """Parse the section. May return early: the remaining text is not part of a call."""

    def push(self, text: str) -> list[ToolCallFragment]:
        """Add text; see `ToolCallParser.push`."""
        self.text += text
        return self._run()

    def end(self, closed: bool = True, *, marked: bool = True) -> tuple[list[ToolCallFragment], str]:
        """End the section; see `ToolCallParser.end`."""
        self.is_over, self.is_closed, self.is_marked = True, closed, closed and marked
        pieces = self._run()
        if self.has_open_call:
            pieces.append(self.fail_call())
        return pieces, self._rest()

    def find(self, pattern: re.Pattern[str], start: int) -> Generator[None, None, re.Match[str] | None]:
        """Wait for a pattern, and return its match, or None if the section ends without it.

        Args:
            pattern: A pattern whose matches end with `trigger`.
            start: The position to search from.
        """
        while (match := pattern.search(self.text, start)) is None and not self.is_over:
            yield from self.wait_for_any(self.trigger)
        return match

    def wait_for_any(self, marks: str) -> Generator[None, None, None]:
        """Wait for new text with one of some characters, or for the section's end."""
        seen = len(self.text)
        while all(self.text.find(mark, seen) < 0 for mark in marks) and not self.is_over:
            seen = len(self.text)
            yield None

    def start_call(self, name: str, call_id: str | None = None) -> ToolCallFragment:
        """Return a call's first fragment.

        Args:
            name: The function's name.
            call_id: The id that the model gave the call.
        """
        self._arguments = []
        self._calls += 1
        return ToolCallFragment(self._calls - 1, call_id, name)

    def add_arguments(self, arguments: str) -> ToolCallFragment:
        """Return a fragment with the next part of the call's arguments."""
        assert self._arguments is not None
        self._arguments.append(arguments)
        return ToolCallFragment(self._calls - 1, arguments=arguments)

    @property
    def has_open_call(self) -> bool:
        """Return whether a call has started and not had its last fragment."""
        return self._arguments is not None

    def arguments_so_far(self) -> dict[str, Any] | None:
        """Return the arguments so far of the open call, or None if they are not an object."""
        return read_object("".join(self._arguments or ()))

    def finish_call(self, start: int, end: int) -> ToolCallFragment:
        """Return the open call's last fragment. The call is complete if its arguments are an object.

        Args:
            start: The start of the call in the section's text.
            end: The end of the call.
        """
        if self.arguments_so_far() is None:
            return self.fail_call()
        self._arguments = None
        self._complete_spans.append((start, end))
        return ToolCallFragment(self._calls - 1, complete=True)

    def fail_call(self) -> ToolCallFragment:
        """Return the last fragment of an open call that proved invalid."""
        self._arguments = None
        return ToolCallFragment(self._calls - 1, complete=False)

    def add_argument(self, call: str, name: str, value: Any) -> Fragments:
        """Yield the fragments of one argument. The first argument starts the call.

        Args:
            call: The function's name.
            name: The argument's name.
            value: The argument's value.

        Raises:
            ValueError, TypeError, RecursionError: JSON has no such value. No fragment was yielded.
        """
        text = write_value({name: value})[1:-1]
        if self._arguments is None:
            yield self.start_call(call)
            yield self.add_arguments("{" + text)
        else:
            yield self.add_arguments("," + text)

    def finish_arguments(self, start: int, end: int, call: str) -> Fragments:
        """Yield the last fragments of a call after its arguments.

        Args:
            start: The start of the call in the section's text.
            end: The end of the call.
            call: The function's name.
        """
        if self._arguments is None:
            yield self.start_call(call)
            yield self.add_arguments("{")
        yield self.add_arguments("}")
        yield self.finish_call(start, end)

    def add_whole_call(self, start: int, end: int, name: str, arguments: Any, call_id: str | None = None) -> Fragments:
        """Yield a call in one fragment, or nothing if its arguments have no form in JSON.

        Args:
            start: The start of the call in the section's text.
            end: The end of the call.
            name: The function's name.
            arguments: The arguments.
            call_id: The id that the model gave the call.
        """
        try:
            text = write_value(arguments)
        except (ValueError, TypeError, RecursionError):
            return
        if read_object(text) is not None:
            self._calls += 1
            self._complete_spans.append((start, end))
            yield ToolCallFragment(self._calls - 1, call_id, name, text, True)

    def is_last_call(self, start: int, end: int) -> bool:
        """Return whether the last complete call is that between two positions of the text."""
        return (start, end) in self._complete_spans[-1:]

    def _run(self) -> list[ToolCallFragment]:
        return list(iter(lambda: next(self._generator, None), None))  # pyrefly: ignore[bad-return]

    def _rest(self) -> str:
        """Return the text outside complete calls, without the separators between them."""
        if not self._complete_spans:
            return self.text
        rest, at = "", 0
        for start, end in self._complete_spans:
            rest += self._without_separators(self.text[at:start])
            at = end
        closing = self.closing.match(self.text, at)
        return rest + self._without_separators(self.text[closing.end() if closing else at :])

    def _without_separators(self, text: str) -> str:
        return "" if self.separators.fullmatch(text) else text
