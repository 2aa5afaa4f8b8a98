"""Calls of Gemma 4 and Gemma's function models: `call:f{city:<escape>Paris<escape>,days:3}`."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from lmwire_protocol import Tool
from lmwire_protocol.imports import lazy_pattern
from lmwire_protocol.messages import Function

from .base import Fragments, GeneratorParser
from .format import ToolCallParser, WrittenCall
from .values import kinds_of

_HEAD: Final = lazy_pattern(r"(?:call|\A\s*):(?P<name>[^\s:{}]+)(?=\{)")
"""The start of a call. Gemma 4 now and then leaves the word out."""
_WORD: Final = lazy_pattern(r"[^,:{}\[\]]*(?=[,:}\]])")
_KEY: Final = r"[^\s,:{}\[\]]+"
_SPACE: Final = lazy_pattern(r"\s*")


def key_order(key: str) -> tuple[str, str]:
    """Return what sorts the keys of an object as Jinja's `dictsort` does, by which templates write calls."""
    return key.lower(), key


class GemmaCall(Struct, frozen=True):
    """A call with bare keys in the order of the alphabet, and strings between two quote markers."""

    quote: str
    """The quote marker."""

    def make_parser(self, tools: Sequence[Tool]) -> ToolCallParser:
        """Return a parser of one section; see `CallShape`."""
        return GemmaParser(self.quote, tools)

    def write(self, call: WrittenCall, index: int) -> str:
        """Return the text of a call; see `CallShape`."""
        return f"call:{call.name}{self._write(call.arguments)}"

    def _write(self, value: Any) -> str:
        if isinstance(value, str):
            return f"{self.quote}{value}{self.quote}"
        if isinstance(value, Mapping):
            items = sorted(value.items(), key=lambda item: key_order(item[0]))
            return f"{{{','.join(f'{key}:{self._write(item)}' for key, item in items)}}}"
        if isinstance(value, list | tuple):
            return f"[{','.join(map(self._write, value))}]"
        return json.dumps(value)


class GemmaParser(GeneratorParser):
    """Parses calls with bare keys, and strings between two quote markers.

    Args:
        quote: The quote marker.
        tools: The request's tools.
    """

    trigger = "{"

    def __init__(self, quote: str, tools: Sequence[Tool]) -> None:
        self._quote = quote
        super().__init__(tools)

    def parse(self) -> Fragments:
        """Parse the calls, argument by argument."""
        at = 0
        while head := (yield from self.find(_HEAD, at)):
            at = head.end()
            try:
                at = yield from self._read_call(head)
            except (_Unfinished, ValueError, RecursionError):
                if self.has_open_call:
                    yield self.fail_call()

    def _read_call(self, head: re.Match[str]) -> Generator[Any, None, int]:
        """Parse a call from its head on, and return its end. Raises as `_ValueParser` does."""
        strings = _BareStrings.of(self.tools.get(head["name"]), self._quote)
        item = yield from self._read_argument(head.end() + 1, strings)
        while item.key is not None:
            yield from self.add_argument(head["name"], item.key, item.value)
            item = yield from self._read_argument(item.at, strings)
        yield from self.finish_arguments(head.start(), item.at, head["name"])
        return item.at

    def _read_argument(self, start: int, strings: "_BareStrings | None") -> Generator[None, None, "_Member"]:
        """Wait for the member that starts at `start`, and return it.

        The section's end marker may stand for the end of the last string and of the call.
        """
        while True:
            bare = strings.start.match(self.text, start) if strings else None
            if strings and bare and (end := strings.end.search(self.text, bare.end())):
                return _Member(bare["key"], _strip(self.text[bare.end() : end.start()]), end.end())
            try:
                if bare is None or (self.is_over and not self.is_marked):
                    return _ValueParser(self.text, self._quote).read_item(start)
            except _Unfinished:
                if self.is_over and not self.is_marked:
                    raise
            if self.is_over:
                return self._read_last(start, bare)
            yield from self.wait_for_any(",}")

    def _read_last(self, start: int, bare: re.Match[str] | None) -> "_Member":
        """Return the member that the section's end marker ends.

        Args:
            start: The start of the member.
            bare: The key before a string without quotes.
        """
        head = bare or re.compile(rf"\s*(?P<key>{_KEY})\s*:\s*{re.escape(self._quote)}").match(self.text, start)
        if head is None:
            if self.text[start:].strip():
                raise _Unfinished
            return _Member(None, None, len(self.text))
        text = self.text[head.end() :].rstrip().removesuffix("}")
        if bare is None:
            text = text.removesuffix(self._quote)
        if self._quote in text:
            raise _Unfinished
        return _Member(head["key"], text if bare is None else _strip(text), len(self.text))


class _BareStrings(NamedTuple):
    """The patterns of a function's strings without quotes: the key, and what follows the string."""

    start: re.Pattern[str]
    end: re.Pattern[str]

    @classmethod
    def of(cls, function: Function | None, quote: str) -> "_BareStrings | None":
        """Return the patterns for a function; None if it has no strings.

        Args:
            function: The function.
            quote: The quote marker.
        """
        properties = function.parameters.get("properties") if function else None
        if not function or not isinstance(properties, dict):
            return None
        names = [name for name, schema in properties.items() if kinds_of(schema, function.parameters) == {"string"}]
        if not names:
            return None
        value = rf"\s*[^\s\d\-\[\]{{}},\"'{re.escape(quote[0])}]"
        key, following = ("|".join(map(re.escape, keys)) for keys in (names, properties))
        end = rf",\s*(?=(?:{following})\s*:)|(?=\}}\s*,?\s*call:)"
        return cls(re.compile(rf"\s*(?P<key>{key})\s*:(?={value})"), re.compile(end))


class _Member(NamedTuple):
    """A member of an object, and the start of the next one. The key is None at the end of the object."""

    key: str | None
    value: Any
    at: int


class _Unfinished(Exception):
    """The text ends inside a value."""


class _ValueParser:
    """Parses values. Its methods take the start of a value, and return the value and its end.

    They raise `_Unfinished` if the text ends inside the value, and ValueError if it is invalid.
    """

    def __init__(self, text: str, quote: str) -> None:
        self._text = text
        self._quote = quote

    def read_value(self, at: int) -> tuple[Any, int]:
        """Parse a quoted string, an object, an array or a bare word."""
        at = self._skip_space(at)
        if self._text.startswith(self._quote, at):
            return self._read_string(at + len(self._quote))
        if self._text.startswith(('"', "'"), at):
            return self._read_other_quotes(at)
        if self._text.startswith("{", at):
            return self._read_object(at + 1)
        if self._text.startswith("[", at):
            return self._read_array(at + 1)
        word, at = self._read_word(at)
        return _literal(word), at

    def read_item(self, at: int) -> _Member:
        """Parse a member of an object, or the object's end."""
        at = self._skip_space(at)
        if self._text.startswith("}", at):
            return _Member(None, None, at + 1)
        quoted = self._text.startswith(self._quote, at)
        key, at = self._read_string(at + len(self._quote)) if quoted else self._read_word(at)
        value, at = self.read_value(self._expect(":", at))
        at = self._skip_space(at)
        return _Member(key, value, at if self._text.startswith("}", at) else self._expect(",", at))

    def _read_object(self, at: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        while (item := self.read_item(at)).key is not None:
            values[item.key], at = item.value, item.at  # pyrefly: ignore[unsupported-operation]
        return values, item.at

    def _read_array(self, at: int) -> tuple[list[Any], int]:
        values = []
        while not self._text.startswith("]", at := self._skip_space(at)):
            value, at = self.read_value(at)
            values.append(value)
            at = self._skip_space(at)
            at = at if self._text.startswith("]", at) else self._expect(",", at)
        return values, at + 1

    def _read_string(self, at: int) -> tuple[str, int]:
        end = self._text.find(self._quote, at)
        if end < 0:
            raise _Unfinished
        return self._text[at:end], end + len(self._quote)

    def _read_other_quotes(self, at: int) -> tuple[str, int]:
        """Parse a string in plain quotes, after which the quote marker may come."""
        mark, quote = self._text[at], re.escape(self._quote)
        closed = re.compile(rf"(?:\\[\s\S]|[^\\])*?{mark}(?=\s*(?:{quote}\s*)?[,}}\]])")
        if (match := closed.match(self._text, at + 1)) is None:
            raise _Unfinished
        text, end = match[0][:-1], self._skip_space(match.end())
        end += len(self._quote) * self._text.startswith(self._quote, end)
        if mark == "'":
            return text.replace("\\'", "'"), end
        try:
            return json.loads(f'"{text}"', strict=False), end
        except ValueError:  # such as a path of Windows
            return text, end

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
        """Return the position of the next character that is not white space."""
        match = _SPACE.match(self._text, at)
        at = match.end() if match else at
        if at == len(self._text):
            raise _Unfinished
        return at


def _strip(text: str) -> str:
    return text.rstrip().lstrip(" ")


def _literal(word: str) -> Any:
    """Return the value of a bare word: a literal of JSON or Python, or otherwise a string."""
    try:
        return json.loads(word)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(word, word)
