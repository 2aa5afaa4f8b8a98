"""Calls as Gemma's function models write them: `call:f{city:<escape>Paris<escape>,days:3}`."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from lmwire_protocol import Tool

from .reader import Pieces, Reader

_HEAD: Final = re.compile(r"call:(?P<name>[^\s:{}]+)(?=\{)")
_WORD: Final = re.compile(r"[^,:{}\[\]]*(?=[,:}\]])")
_SPACE: Final = re.compile(r"\s*")


class GemmaCalls(Reader):
    """Reads calls whose strings stand between two of the same mark, and whose keys need none."""

    mark = "{"

    def __init__(self, quote: str, tools: Sequence[Tool]) -> None:
        self._quote = quote
        super().__init__(tools)

    def read(self) -> Pieces:
        """Reads call after call, each when it is whole."""
        at = 0
        while head := (yield from self.find(_HEAD, at)):
            at = head.end()
            while (found := self._arguments(at)) is None and not self.over:
                yield from self.await_mark("}")
            if found and found.value is not None:
                at = found.at
                yield from self.give_whole(head.start(), at, head["name"], found.value)

    def _arguments(self, start: int) -> "_Found | None":
        """What begins at `start`; None as long as it has no end."""
        try:
            return _Found(*_Scanner(self.text, self._quote).read_value(start))
        except _Unfinished:
            return None
        except (ValueError, RecursionError):
            return _Found(None, start)


class _Found(NamedTuple):
    """An argument, and where it ends."""

    value: Any
    at: int


class _Unfinished(Exception):
    """The text ends inside a value."""


class _Scanner:
    """Reads values of a text. Its methods take where something begins, and return it and where it ends.

    They raise _Unfinished when the text ends before it does, and ValueError when it is none.
    """

    def __init__(self, text: str, quote: str) -> None:
        self._text = text
        self._quote = quote

    def read_value(self, at: int) -> tuple[Any, int]:
        """Reads a string between marks, an object, an array, or a bare word."""
        at = self._skip_space(at)
        if self._text.startswith(self._quote, at):
            return self._read_string(at + len(self._quote))
        if self._text.startswith("{", at):
            return self._read_object(at + 1)
        if self._text.startswith("[", at):
            return self._read_array(at + 1)
        word, at = self._read_word(at)
        return _literal(word), at

    def _read_object(self, at: int) -> tuple[dict[str, Any], int]:
        values = {}
        at = self._skip_space(at)
        while not self._text.startswith("}", at):
            quoted = self._text.startswith(self._quote, at)
            key, at = self._read_string(at + len(self._quote)) if quoted else self._read_word(at)
            at = self._expect(":", at)
            values[key], at = self.read_value(at)
            at = self._next_item("}", at)
        return values, at + 1

    def _read_array(self, at: int) -> tuple[list[Any], int]:
        values = []
        at = self._skip_space(at)
        while not self._text.startswith("]", at):
            value, at = self.read_value(at)
            values.append(value)
            at = self._next_item("]", at)
        return values, at + 1

    def _next_item(self, bracket: str, at: int) -> int:
        """Where the next item begins: after a comma, or at the closing bracket."""
        at = self._skip_space(at)
        return at if self._text.startswith(bracket, at) else self._skip_space(self._expect(",", at))

    def _read_string(self, at: int) -> tuple[str, int]:
        end = self._text.find(self._quote, at)
        if end < 0:
            raise _Unfinished
        return self._text[at:end], end + len(self._quote)

    def _read_word(self, at: int) -> tuple[str, int]:
        match = _WORD.match(self._text, at)
        if match is None:
            raise _Unfinished
        if not match[0].strip():
            raise ValueError("no value")
        return match[0].strip(), match.end()

    def _expect(self, mark: str, at: int) -> int:
        at = self._skip_space(at)
        if not self._text.startswith(mark, at):
            raise ValueError(f"no {mark}")
        return at + len(mark)

    def _skip_space(self, at: int) -> int:
        """The next thing's place. There must be one."""
        match = _SPACE.match(self._text, at)
        at = match.end() if match else at
        if at == len(self._text):
            raise _Unfinished
        return at


def _literal(word: str) -> Any:
    """A number or a name of JSON or Python; any other word is a string."""
    try:
        return json.loads(word)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(word, word)
