"""Calls with each value between tags, objects and arrays too: `<city>Paris</city><tags><item>a</item></tags>`.

The model may repeat a parameter's tag for the elements of an array. Each tag follows a marker, so that no other text is
taken for a tag. See MiniMax M3's chat template.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lmwire_protocol import Tool

from .base import Fragments, GeneratorParser
from .format import ToolCallParser, WrittenCall
from .values import kinds_of, read_text, resolve_kind, write_text

ITEM: Final = "item"
"""Name of the tag around each element of an array."""
_MAX_DEPTH: Final = 64
"""Maximum number of tags inside one another. A deeper value is text."""


class NestedCall(Struct, frozen=True):
    """A call with its values between nested tags."""

    marker: str
    """Text before each tag."""

    @property
    def tail(self) -> str:
        """Return the text after the parameters."""
        return f"{self.marker}</invoke>\n"

    def head(self, name: str) -> str:
        """Return the text before the parameters."""
        return f'{self.marker}<invoke name="{name}">'

    def open_tag(self, name: str) -> str:
        """Return the text before a value."""
        return f"{self.marker}<{name}>"

    def close_tag(self, name: str) -> str:
        """Return the text after a value."""
        return f"{self.marker}</{name}>"

    def make_parser(self, tools: Sequence[Tool]) -> ToolCallParser:
        """Return a parser of one section; see `CallShape`."""
        return _NestedParser(self, tools)

    def write(self, call: WrittenCall, index: int) -> str:
        """Return the text of a call; see `CallShape`."""
        return self.head(call.name) + self._write(call.arguments) + self.tail

    def _write(self, value: Any) -> str:
        if isinstance(value, Mapping):
            items = [(key, item) for key, item in value.items() if item is not None]
        elif isinstance(value, list | tuple):
            items = [(ITEM, item) for item in value]
        else:
            return write_text(value)
        return "".join(self.open_tag(key) + self._write(item) + self.close_tag(key) for key, item in items)


class _NestedParser(GeneratorParser):
    """Parses calls of nested tags, each when it is complete.

    Args:
        call: The shape of the calls.
        tools: The request's tools.
    """

    trigger = ">"

    def __init__(self, call: NestedCall, tools: Sequence[Tool]) -> None:
        marker = re.escape(call.marker)
        self._call = call
        self._head = re.compile(rf"(?:{marker})?<invoke name=[\"']?(?P<name>[^\"'<>]+)[\"']?>")
        self._tail = re.compile(rf"{marker}</invoke>")
        self._open = re.compile(rf"\s*{marker}<(?P<name>[^<>/]+)>")
        super().__init__(tools)

    def parse(self) -> Fragments:
        """Parse the calls."""
        at = 0
        while head := (yield from self.find(self._head, at)):
            tail = yield from self.find(self._tail, head.end())
            if tail is None:
                return
            function = self.tools.get(head["name"])
            schema = function.parameters if function else {}
            arguments = self._read_object(self.text[head.end() : tail.start()], schema, schema, 0)
            at = tail.end()
            if arguments is not None:
                yield from self.add_whole_call(head.start(), at, head["name"], arguments)

    def _read_value(self, text: str, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
        kinds = kinds_of(schema, root)
        if kinds == {"string"} or depth > _MAX_DEPTH:
            return text
        tags = self._children(text) if self._open.match(text) else None
        if tags is not None and (kinds is None or kinds & {"array", "object"}):
            is_array = all(name == ITEM for name, _ in tags) and (kinds is None or "array" in kinds)
            if not is_array:
                return self._read_object(text, schema, root, depth)
            items = resolve_kind(schema, "array", root).get("items")
            return [self._read_value(part, items, root, depth + 1) for _, part in tags]
        if not text.strip() and kinds is not None and "string" not in kinds:
            return [] if "array" in kinds else {} if "object" in kinds else None
        return read_text(text, kinds)

    def _read_object(self, text: str, schema: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any] | None:
        tags = self._children(text)
        if tags is None:
            return None
        properties = resolve_kind(schema, "object", root).get("properties")
        schemas = properties if isinstance(properties, dict) else {}
        parts: dict[str, list[str]] = {}
        values: dict[str, Any] = {}
        for name, part in tags:
            parts.setdefault(name, []).append(part)
        for name, texts in parts.items():
            of = schemas.get(name)
            kinds = kinds_of(of, root)
            if len(texts) > 1 and (kinds is None or "array" in kinds):
                of = resolve_kind(of, "array", root).get("items")
                values[name] = [self._read_value(text, of, root, depth + 1) for text in texts]
            else:
                values[name] = self._read_value(texts[-1], of, root, depth + 1)
        return values

    def _children(self, text: str) -> list[tuple[str, str]] | None:
        """Return the names and contents of a text's tags; None if it has other text."""
        children: list[tuple[str, str]] = []
        at = 0
        while head := self._open.match(text, at):
            end = self._find_close(text, head.end(), head["name"])
            if end < 0:
                return None
            children.append((head["name"], text[head.end() : end]))
            at = end + len(self._call.close_tag(head["name"]))
        return None if text[at:].strip() else children

    def _find_close(self, text: str, start: int, name: str) -> int:
        """Return the start of the tag that closes the one before `start`; -1 if there is none."""
        opening, closing = self._call.open_tag(name), self._call.close_tag(name)
        depth, at, end = 1, start, start
        while depth:
            end = text.find(closing, at)
            if end < 0:
                return -1
            depth += text.count(opening, at, end) - 1
            at = end + len(closing)
        return end
