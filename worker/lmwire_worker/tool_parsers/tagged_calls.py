"""Calls whose parameters stand between tags, each by itself: `<parameter=city>Paris</parameter>`.

mlx-lm's parser of the format says what a value means, given one parameter at a time. What this adds is that pieces of
a call are given before it is whole, that long strings are given as they come, and that nothing between tags is lost.
"""

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import Tool
from lmwire_protocol.messages import Function

from .base import Pieces, Reader
from .objects import read_object, write_value

LONG: Final = 32
"""Characters of a string from which on it is given as it comes. No shorter than a tag, or than `null`."""

Parse = Callable[[str, list[dict[str, Any]]], Any]


@dataclass(frozen=True, slots=True)
class Tags:
    """How a format writes its tags. Patterns match nothing that more text could make longer."""

    parse: Parse
    """mlx-lm's parser."""
    call: str
    """A pattern of what begins a call, with the function's name as `function`."""
    parameter: str
    """A pattern of what begins a parameter, with its name as `parameter`."""
    parameter_end: str
    """A pattern of what ends a parameter; begins with `<` and is no longer than LONG."""
    call_end: str = ""
    """What ends a call; the end of the section when empty."""
    untagged: bool = False
    """Whether the parser knows calls without tags, which are whole sections then."""
    trims: str | None = None
    """A pattern of what the parser strips from the beginning of a string. None: strings are not given as they come."""


class TaggedCalls(Reader):
    """Reads calls between tags."""

    mark = ">"

    def __init__(self, tags: Tags, tools: Sequence[Tool]) -> None:
        self._tags = tags
        self._head = re.compile(tags.call)
        self._tag = re.compile(f"(?P<end>{re.escape(tags.call_end) or '(?!)'})|{tags.parameter}|{tags.call}")
        self._value_end = re.compile(tags.parameter_end)
        super().__init__(tools)
        self._schemas = {name: _schemas(function) for name, function in self.tools.items()}

    def read(self) -> Pieces:
        """Reads call after call."""
        head = yield from self.find(self._head, 0)
        if head is None and self.closed and self._tags.untagged:
            yield from self._read_untagged()
        while head:
            yield self.begin(head["function"])
            head = yield from self._read_call(head)

    def _read_call(self, head: re.Match[str]) -> Generator[Any, None, re.Match[str] | None]:
        """Reads a call from its head on. Returns the next one's head; None when the section is over."""
        at, separator = head.end(), "{"
        while (tag := (yield from self.find(self._tag, at))) and tag["parameter"] and self._blank(at, tag.start()):
            end = yield from self._read_parameter(head, tag, separator)
            if end is None or not self.begun:
                return None if end is None else (yield from self.find(self._head, end))
            at, separator = end, ","
        end, after = tag.span() if tag else (len(self.text), len(self.text))
        whole = bool(tag["end"]) if tag else self.closed and not self._tags.call_end
        if whole and self._blank(at, end):
            yield self.give("{}" if separator == "{" else "}")
            yield self.finish(head.start(), after)
        else:
            yield self.fail()
        return (yield from self.find(self._head, after if whole else end))

    def _read_parameter(
        self, head: re.Match[str], tag: re.Match[str], separator: str
    ) -> Generator[Any, None, int | None]:
        """Reads a parameter from its tag on, and fails the call when it cannot be read.

        Returns where the parameter ends; None when the section is over before it.
        """
        start, sent = yield from self._pass_on(head, tag, separator)
        close = yield from self.find(self._value_end, tag.end())
        if close is None:
            return None
        arguments = self._parse(head[0] + self.text[tag.start() : close.end()] + self._tags.call_end)[1]
        value = arguments.get(tag["parameter"])
        if not sent and arguments:
            yield self.give(separator + write_value(arguments)[1:-1])
        elif sent and isinstance(value, str) and value.startswith(self.text[start:sent]):
            yield self.give(_escape(value[sent - start :]) + '"')
        else:
            yield self.fail()
        return close.end()

    def _pass_on(
        self, head: re.Match[str], tag: re.Match[str], separator: str
    ) -> Generator[Any, None, tuple[int, int]]:
        """Gives a long string on while it comes. Returns between which places of the text it was given."""
        start = sent = 0
        if not self._is_string(head["function"], tag["parameter"]):
            return start, sent
        searched = tag.end()
        while not self._value_end.search(self.text, searched) and not self.over:
            settled = _settled(self.text, tag.end())
            if not sent and settled - tag.end() >= LONG:
                start = sent = self._trimmed(tag.end())
                yield self.give(f'{separator}{write_value(tag["parameter"])}:"')
            if sent and settled > sent:
                yield self.give(_escape(self.text[sent:settled]))
                sent = settled
            searched = max(searched, len(self.text) - LONG)
            yield None
        return start, sent

    def _read_untagged(self) -> Pieces:
        """Reads a call without parameters, which may be its name alone, and what else the parser knows.

        The parser finds a call in any text: it must be one of the request's functions, and not the text itself.
        """
        text = self.text.strip()
        name, arguments = (text, {}) if text in self.tools else self._parse(text)
        if name in self.tools and ("raw" not in arguments or "raw" in self._schemas[name]):
            yield from self.give_whole(0, len(self.text), name, arguments)

    def _parse(self, text: str) -> tuple[str, dict[str, Any]]:
        """What mlx-lm's parser finds, name and arguments; nothing where it fails, or finds what JSON cannot hold."""
        functions = [
            {"type": "function", "function": {"name": name, "parameters": {"properties": schemas}}}
            for name, schemas in self._schemas.items()
        ]
        try:
            call = self._tags.parse(text, functions)
            call = call[0] if isinstance(call, list) else call
            name, arguments = call["name"], call["arguments"]
            if isinstance(name, str) and read_object(write_value(arguments)) is not None:
                return name, arguments
        except Exception:  # parsers are known to raise anything
            pass
        return "", {}

    def _is_string(self, function: str, parameter: str) -> bool:
        schema = self._schemas.get(function, {}).get(parameter, {})
        return self._tags.trims is not None and schema.get("type") == "string"

    def _trimmed(self, start: int) -> int:
        match = re.compile(self._tags.trims or "").match(self.text, start)
        return match.end() if match else start

    def _blank(self, start: int, end: int) -> bool:
        return not self.text[start:end].strip()


def _schemas(function: Function) -> dict[str, dict[str, Any]]:
    """The schemas of a function's parameters, those that are objects: the parsers know no others."""
    properties = function.parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: schema for name, schema in properties.items() if isinstance(schema, dict)}


def _settled(text: str, start: int) -> int:
    """Up to where a value surely goes: what may begin the closing tag or be stripped before it is left out."""
    tag = text.rfind("<", max(start, len(text) - LONG))
    return start + len(text[start : tag if tag >= 0 else len(text)].rstrip())


def _escape(text: str) -> str:
    return write_value(text)[1:-1]
