"""A tool's parameters one by one, for formats that write each parameter between markers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import RequestError

from .lark_rules import LarkRules, excluding, quoted

ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id", "$defs", "definitions")
)
"""Keywords that constrain nothing."""
OBJECT_KEYWORDS: Final = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
CHOICE_KEYWORDS: Final = {"type", "enum", "const"}
LENGTH_KEYWORDS: Final = {"type", "minLength", "maxLength"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool, or a property of a parameter."""

    name: str
    schema: dict[str, Any]
    """Schema of the parameter, with the definitions that it may reference."""
    required: bool
    path: str
    """Path of the schema in the request."""

    @property
    def is_string(self) -> bool:
        """Return whether the parameter is always a string."""
        return self.schema.get("type") == "string"

    @property
    def is_typed(self) -> bool:
        """Return whether the parameter has exactly one type."""
        return isinstance(self.schema.get("type"), str)


def read_parameters(schema: dict[str, Any], path: str) -> Iterator[Parameter]:
    """Yield the properties of an object's schema, in the schema's order.

    Args:
        schema: The object's schema.
        path: The schema's path in the request.

    Raises:
        RequestError: unsupported: the schema has constraints that do not belong to one property.
    """
    for keyword in schema.keys() - OBJECT_KEYWORDS:
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


def loosen(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the same names and types, and no other constraints."""
    kind = schema.get("type")
    properties = schema.get("properties")
    if kind == "object" or properties:
        parts = properties.items() if isinstance(properties, dict) else ()
        return {"type": "object", "properties": {name: loosen(_object(part)) for name, part in parts}}
    if kind == "array":
        return {"type": "array", "items": loosen(_object(schema.get("items")))}
    return {"type": kind if isinstance(kind, str) else "string"}


def _object(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


@dataclass(frozen=True, slots=True)
class RawText:
    """The way in which a format writes unquoted strings between markers."""

    excluded: Sequence[str] = ()
    """Texts that a string must not contain, besides its end marker, because they would end it for the parser."""
    trimmed: bool = False
    """The parser drops white space at both ends."""
    excludes_null: bool = False
    """The parser does not read the word `null` as a string."""

    def rule(self, rules: LarkRules, schema: dict[str, Any], path: str, end: str) -> str:
        """Return a rule for a string and the marker after it.

        Args:
            rules: The grammar to add the rule to.
            schema: The string's schema.
            path: The schema's path in the request.
            end: The marker after the string.

        Raises:
            RequestError: unsupported: the format cannot enforce the schema.
        """
        chosen = "enum" in schema or "const" in schema
        for keyword in schema.keys() - ANNOTATIONS - (CHOICE_KEYWORDS if chosen else LENGTH_KEYWORDS):
            raise unsupported(f"{path}.{keyword}", "strings in this model's tool calls cannot be held to it")
        if chosen:
            texts = schema.get("enum", [schema.get("const")])
            return self._choice(rules, [text for text in texts if text == schema.get("const", text)], path, end)
        length = f"{schema.get('minLength', 0)},{schema.get('maxLength', '')}"
        allowed = f"/(?s:.{{{length}}})/{excluding([end, *self.excluded])}"
        if self.trimmed:
            allowed += r" & /(\S((?s:.*)\S)?)?/"
        if self.excludes_null:
            allowed += " & ~/(?i:null)/"
        return rules.text_until(end, allowed)

    def _choice(self, rules: LarkRules, texts: Sequence[Any], path: str, end: str) -> str:
        for text in texts:
            if not isinstance(text, str) or not self._can_write([end, *self.excluded], text):
                raise unsupported(path, f"{text!r} cannot be written in this model's tool calls")
        return rules.rule(f"({' | '.join(map(quoted, texts))}) {rules.literal(end)}")

    def _can_write(self, banned: Sequence[str], text: str) -> bool:
        trimmed = self.trimmed and text != text.strip()
        null = self.excludes_null and text.lower() == "null"
        return not trimmed and not null and not any(mark in text for mark in banned)


def check_name(name: str, names: re.Pattern[str], path: str) -> str:
    """Return a name that the format can write.

    Args:
        name: The name.
        names: The pattern of valid names.
        path: The name's path in the request.

    Raises:
        RequestError: unsupported: the name does not match.
    """
    if not names.fullmatch(name):
        raise unsupported(path, f"{name!r} cannot be written in this model's tool calls")
    return name


def unsupported(path: str, problem: str) -> RequestError:
    """Return an unsupported error, for a part that this model's format of calls cannot enforce.

    Args:
        path: The part's path in the request.
        problem: What is not supported.
    """
    return RequestError("unsupported", f"`{path}`: {problem}", field=path)
