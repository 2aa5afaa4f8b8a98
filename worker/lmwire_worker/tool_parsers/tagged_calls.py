"""The parser for calls with each parameter between tags: `<parameter=city>Paris</parameter>`.

mlx-lm's parser of the format reads the values, one parameter at a time. This parser adds streaming: each argument is
reported when it is complete, long strings are reported as they come, and no text between tags is lost.
"""

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import Tool
from lmwire_protocol.messages import Function

from .base import Fragments, GeneratorParser
from .objects import read_object, write_value

MIN_STREAMED_CHARACTERS: Final = 32
"""Length from which a string is streamed, in characters. Not shorter than a tag, or than `null`."""

Parse = Callable[[str, list[dict[str, Any]]], Any]


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a format. More text never extends a match of the patterns."""

    parse: Parse
    """mlx-lm's parser."""
    call: str
    """Pattern of a call's start; its group `function` is the function's name."""
    parameter: str
    """Pattern of a parameter's start; its group `parameter` is the name."""
    parameter_end: str
    """Pattern of a parameter's end; starts with `<` and matches at most MIN_STREAMED_CHARACTERS."""
    call_end: str = ""
    """The end of a call; empty if the end of the section ends it."""
    untagged: bool = False
    """True if mlx-lm's parser accepts calls without tags, which are whole sections."""
    trims: str | None = None
    """Pattern of the text that mlx-lm's parser strips from a string's start; None to stream no strings."""


class TaggedParser(GeneratorParser):
    """Parses calls between tags.

    Args:
        tags: The tags of the format.
        tools: The request's tools.
    """

    trigger = ">"

    def __init__(self, tags: Tags, tools: Sequence[Tool]) -> None:
        self._tags = tags
        self._head = re.compile(tags.call)
        self._tag = re.compile(f"(?P<end>{re.escape(tags.call_end) or '(?!)'})|{tags.parameter}|{tags.call}")
        self._value_end = re.compile(tags.parameter_end)
        super().__init__(tools)
        self._schemas = {name: _schemas(function) for name, function in self.tools.items()}

    def parse(self) -> Fragments:
        """Parse the calls."""
        head = yield from self.find(self._head, 0)
        if head is None and self.is_closed and self._tags.untagged:
            yield from self._read_untagged()
        while head:
            yield self.start_call(head["function"])
            head = yield from self._read_call(head)

    def _read_call(self, head: re.Match[str]) -> Generator[Any, None, re.Match[str] | None]:
        """Parse a call from its head on. Return the next call's head, or None if the section ends."""
        at, separator = head.end(), "{"
        while (tag := (yield from self.find(self._tag, at))) and tag["parameter"] and self._blank(at, tag.start()):
            end = yield from self._read_parameter(head, tag, separator)
            if end is None or not self.has_open_call:
                return None if end is None else (yield from self.find(self._head, end))
            at, separator = end, ","
        end, after = tag.span() if tag else (len(self.text), len(self.text))
        whole = bool(tag["end"]) if tag else self.is_closed and not self._tags.call_end
        if whole and self._blank(at, end):
            yield self.add_arguments("{}" if separator == "{" else "}")
            yield self.finish_call(head.start(), after)
        else:
            yield self.fail_call()
        return (yield from self.find(self._head, after if whole else end))

    def _read_parameter(
        self, head: re.Match[str], tag: re.Match[str], separator: str
    ) -> Generator[Any, None, int | None]:
        """Parse a parameter from its tag on, and fail the call if it is invalid.

        Returns:
            The end of the parameter; None if the section ends inside it.
        """
        start, sent = yield from self._stream_string(head, tag, separator)
        close = yield from self.find(self._value_end, tag.end())
        if close is None:
            return None
        arguments = self._parse(head[0] + self.text[tag.start() : close.end()] + self._tags.call_end)[1]
        value = arguments.get(tag["parameter"])
        if not sent and arguments:
            yield self.add_arguments(separator + write_value(arguments)[1:-1])
        elif sent and isinstance(value, str) and value.startswith(self.text[start:sent]):
            yield self.add_arguments(_escape(value[sent - start :]) + '"')
        else:
            yield self.fail_call()
        return close.end()

    def _stream_string(
        self, head: re.Match[str], tag: re.Match[str], separator: str
    ) -> Generator[Any, None, tuple[int, int]]:
        """Stream a long string. Return the start and the end of the text that was streamed."""
        start = sent = 0
        if not self._is_string(head["function"], tag["parameter"]):
            return start, sent
        searched = tag.end()
        while not self._value_end.search(self.text, searched) and not self.is_over:
            settled = _settled(self.text, tag.end())
            if not sent and settled - tag.end() >= MIN_STREAMED_CHARACTERS:
                start = sent = self._trimmed(tag.end())
                yield self.add_arguments(f'{separator}{write_value(tag["parameter"])}:"')
            if sent and settled > sent:
                yield self.add_arguments(_escape(self.text[sent:settled]))
                sent = settled
            searched = max(searched, len(self.text) - MIN_STREAMED_CHARACTERS)
            yield None
        return start, sent

    def _read_untagged(self) -> Fragments:
        """Parse a section without tags: a function's name alone, or another form that mlx-lm's parser accepts.

        mlx-lm's parser accepts any text, so that the call must be of one of the request's functions.
        """
        text = self.text.strip()
        name, arguments = (text, {}) if text in self.tools else self._parse(text)
        if name in self.tools and ("raw" not in arguments or "raw" in self._schemas[name]):
            yield from self.add_whole_call(0, len(self.text), name, arguments)

    def _parse(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the name and arguments that mlx-lm's parser finds; empty if it fails or JSON has no such values."""
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
        except Exception:  # parsers may raise anything
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
    """Return the schemas of a function's parameters that are objects: mlx-lm's parsers accept no others."""
    properties = function.parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: schema for name, schema in properties.items() if isinstance(schema, dict)}


def _settled(text: str, start: int) -> int:
    """Return the end of the certain part of a value: without white space, or a tag that may close it, at its end."""
    tag = text.rfind("<", max(start, len(text) - MIN_STREAMED_CHARACTERS))
    return start + len(text[start : tag if tag >= 0 else len(text)].rstrip())


def _escape(text: str) -> str:
    return write_value(text)[1:-1]
