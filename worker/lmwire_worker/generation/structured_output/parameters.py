"""A tool's parameters one by one, for formats that write each between marks of its own."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import RequestError

from .rules import Rules, excluding, quoted

NOTES: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id", "$defs", "definitions")
)
"""Keywords that hold nothing to anything."""
OF_OBJECTS: Final = NOTES | {"type", "properties", "required", "additionalProperties"}
CHOOSING: Final = {"type", "enum", "const"}
MEASURING: Final = {"type", "minLength", "maxLength"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of a tool, or a property of an object among them."""

    name: str
    schema: dict[str, Any]
    """Its own, with the definitions that it may refer to."""
    required: bool
    path: str
    """Of the schema, in the request."""

    @property
    def is_string(self) -> bool:
        """Whether it is a string and nothing else."""
        return self.schema.get("type") == "string"

    @property
    def is_typed(self) -> bool:
        """Whether it has one type."""
        return isinstance(self.schema.get("type"), str)


def parameters(schema: dict[str, Any], path: str) -> Iterator[Parameter]:
    """What an object's schema says of each of its properties, in the schema's order.

    Raises:
        RequestError: unsupported: it holds the object to more than can be said property by property.
    """
    for keyword in schema.keys() - OF_OBJECTS:
        raise unsupported(f"{path}.{keyword}", "this model's tool calls cannot be held to it")
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    for name in required:
        if name not in properties:
            raise unsupported(f"{path}.required", f"{name!r} is not among `properties`")
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    for name, part in properties.items():
        inner = f"{path}.properties.{name}"
        if not isinstance(part, dict):
            raise unsupported(inner, "this model's tool calls need a schema that is an object")
        yield Parameter(name, definitions | part, name in required, inner)


def loosened(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of the same types and names that holds nothing to more."""
    kind = schema.get("type")
    properties = schema.get("properties")
    if kind == "object" or properties:
        parts = properties.items() if isinstance(properties, dict) else ()
        return {"type": "object", "properties": {name: loosened(_object(part)) for name, part in parts}}
    if kind == "array":
        return {"type": "array", "items": loosened(_object(schema.get("items")))}
    return {"type": kind if isinstance(kind, str) else "string"}


def _object(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


@dataclass(frozen=True, slots=True)
class RawText:
    """How a format writes strings that stand between marks as they are."""

    banned: Sequence[str] = ()
    """What a string must not hold, besides the mark behind it, because a reader would stop there."""
    trimmed: bool = False
    """Readers drop white space at both ends."""
    null: bool = False
    """Readers take the word null for no string."""

    def rule(self, rules: Rules, schema: dict[str, Any], path: str, end: str) -> str:
        """A rule for a string and the mark behind it.

        Raises:
            RequestError: unsupported: the schema asks for more than such a string can be held to.
        """
        chosen = "enum" in schema or "const" in schema
        for keyword in schema.keys() - NOTES - (CHOOSING if chosen else MEASURING):
            raise unsupported(f"{path}.{keyword}", "strings in this model's tool calls cannot be held to it")
        if chosen:
            texts = schema.get("enum", [schema.get("const")])
            return self._choice(rules, [text for text in texts if text == schema.get("const", text)], path, end)
        length = f"{schema.get('minLength', 0)},{schema.get('maxLength', '')}"
        allowed = f"/(?s:.{{{length}}})/{excluding([end, *self.banned])}"
        if self.trimmed:
            allowed += r" & /(\S((?s:.*)\S)?)?/"
        if self.null:
            allowed += " & ~/(?i:null)/"
        return rules.text_until(end, allowed)

    def _choice(self, rules: Rules, texts: Sequence[Any], path: str, end: str) -> str:
        for text in texts:
            if not isinstance(text, str) or not self._holds([end, *self.banned], text):
                raise unsupported(path, f"{text!r} cannot be written in this model's tool calls")
        return rules.rule(f"({' | '.join(map(quoted, texts))}) {rules.literal(end)}")

    def _holds(self, banned: Sequence[str], text: str) -> bool:
        trimmed = self.trimmed and text != text.strip()
        null = self.null and text.lower() == "null"
        return not trimmed and not null and not any(mark in text for mark in banned)


def checked_name(name: str, names: re.Pattern[str], path: str) -> str:
    """The name, if it is one of `names`.

    Raises:
        RequestError: unsupported.
    """
    if not names.fullmatch(name):
        raise unsupported(path, f"{name!r} cannot be written in this model's tool calls")
    return name


def unsupported(path: str, problem: str) -> RequestError:
    """A refusal of what this model's way to call tools cannot be held to."""
    return RequestError("unsupported", f"`{path}`: {problem}", field=path)
