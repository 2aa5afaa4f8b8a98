"""What all readers share: the section's text, the calls given, and what is left."""

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any, ClassVar

from lmwire_protocol import Tool

from .format import CallText
from .objects import read_object, write_value

Pieces = Iterator[CallText | None]
"""What a reader's code yields: pieces of calls, and None where it needs more text."""


class Reader(ABC):
    """Reads a section with one generator, which is resumed whenever text has come.

    The generator waits by yielding None. When the section is over it is resumed a last time; what it then still waits
    for will not come.
    """

    separators: ClassVar[re.Pattern[str]] = re.compile(r"[\s,;\[\]]*")
    """What may stand between whole calls and means nothing."""

    mark: ClassVar[str]
    """The last character of all that `find` waits for: a search before it has come would find nothing."""

    lost = False

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = {tool.function.name: tool.function for tool in tools}
        self.text = ""
        self.over = False
        self.closed = False
        self._calls = 0
        self._given: list[str] | None = None
        self._whole: list[tuple[int, int]] = []
        self._pieces = self.read()

    @abstractmethod
    def read(self) -> Pieces:
        """Reads the section. May end early: the text from there on is in no call."""

    def push(self, text: str) -> list[CallText]:
        """Takes the next text; see CallReader."""
        self.text += text
        return self._run()

    def end(self, closed: bool = True) -> tuple[list[CallText], str]:
        """Ends the section; see CallReader."""
        self.over, self.closed = True, closed
        pieces = self._run()
        if self.begun:
            pieces.append(self.fail())
        return pieces, self._rest()

    def find(self, pattern: re.Pattern[str], start: int) -> Generator[None, None, re.Match[str] | None]:
        """Waits for a pattern; None when the section is over without it."""
        while (match := pattern.search(self.text, start)) is None and not self.over:
            yield from self.await_mark(self.mark)
        return match

    def await_mark(self, marks: str) -> Generator[None, None, None]:
        """Waits for new text that holds one of some characters, or for the section's end."""
        seen = len(self.text)
        while all(self.text.find(mark, seen) < 0 for mark in marks) and not self.over:
            seen = len(self.text)
            yield None

    def begin(self, name: str, call_id: str | None = None) -> CallText:
        """A call's first piece."""
        self._given = []
        self._calls += 1
        return CallText(self._calls - 1, call_id, name)

    def give(self, arguments: str) -> CallText:
        """The next piece of the call's arguments."""
        assert self._given is not None
        self._given.append(arguments)
        return CallText(self._calls - 1, arguments=arguments)

    @property
    def begun(self) -> bool:
        """Whether a call has begun that has not had its last piece."""
        return self._given is not None

    def given(self) -> dict[str, Any] | None:
        """The arguments given of the call that has begun, if they are an object."""
        return read_object("".join(self._given or ()))

    def finish(self, start: int, end: int) -> CallText:
        """The last piece of the call between start and end. It is whole if what was given is an object."""
        if self.given() is None:
            return self.fail()
        self._given = None
        self._whole.append((start, end))
        return CallText(self._calls - 1, complete=True)

    def fail(self) -> CallText:
        """The call's last piece, when it is none after all."""
        self._given = None
        return CallText(self._calls - 1, complete=False)

    def give_argument(self, call: str, name: str, value: Any) -> Pieces:
        """An argument that is whole, and before the first one the beginning of the call.

        Raises:
            ValueError, TypeError, RecursionError: JSON has no such value. Nothing was given.
        """
        text = write_value({name: value})[1:-1]
        if self._given is None:
            yield self.begin(call)
            yield self.give("{" + text)
        else:
            yield self.give("," + text)

    def give_end(self, start: int, end: int, call: str) -> Pieces:
        """What is left to give of the call between start and end, all of whose arguments are given."""
        if self._given is None:
            yield self.begin(call)
            yield self.give("{")
        yield self.give("}")
        yield self.finish(start, end)

    def give_whole(self, start: int, end: int, name: str, arguments: Any, call_id: str | None = None) -> Pieces:
        """A call in one piece; nothing when JSON cannot hold its arguments."""
        try:
            text = write_value(arguments)
        except (ValueError, TypeError, RecursionError):
            return
        if read_object(text) is not None:
            self._calls += 1
            self._whole.append((start, end))
            yield CallText(self._calls - 1, call_id, name, text, True)

    def has_read(self, start: int, end: int) -> bool:
        """Whether the text between start and end is a whole call."""
        return (start, end) in self._whole[-1:]

    def _run(self) -> list[CallText]:
        return list(iter(lambda: next(self._pieces, None), None))

    def _rest(self) -> str:
        """The text in no whole call, without the separators between whole ones."""
        if not self._whole:
            return self.text
        rest, at = "", 0
        for start, end in [*self._whole, (len(self.text), len(self.text))]:
            between = self.text[at:start]
            rest += "" if self.separators.fullmatch(between) else between
            at = end
        return rest
