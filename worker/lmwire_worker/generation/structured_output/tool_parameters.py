"""A tool's parameters one by one, for formats that write each parameter between markers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmwire_protocol import RequestError

from ...tool_parsers import kind_of
from .lark_rules import LarkRules, excluding, quoted

ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$id", "$defs", "definitions")
)
"""Keywords that constrain nothing."""
DEFINITIONS: Final = ("$defs", "definitions")
"""Keywords whose schemas a schema may reference."""
KINDS: Final = ("string", "number", "boolean", "null", "array", "object")
"""All types; an integer is a number."""
KIND_BY_KEYWORD: Final = {
    keyword: kind
    for kind, keywords in {
        "string": ("minLength", "maxLength", "pattern", "format"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
        "object": (
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "minProperties",
            "maxProperties",
        ),
    }.items()
    for keyword in keywords
}
"""The type of the values that a keyword constrains."""
MAX_SCHEMA_DEPTH: Final = 32
"""Maximum number of references and choices inside one another."""
LITERALS: Final = {
    "null": r"(null|None)([\n<](?s:.*))?",
    "boolean": r"([tT]rue|[fF]alse)([\n<](?s:.*))?",
    "number": "-?[0-9](?s:.*)",
    "array": r"\[(?s:.*)",
    "object": r"\{(?s:.*)",
}
"""Patterns of the texts that are read as other values than strings, where the schema allows these.

Texts that start with a word and the end of its line are among them: a lexer would go on after the word."""
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

    def alternatives(self) -> list[dict[str, Any]]:
        """Return schemas with one `type` each, which together allow what the parameter's schema allows.

        Raises:
            RequestError: unsupported: the schema cannot be split.
        """
        try:
            return split_by_type(self.schema)
        except RecursionError:
            raise unsupported(self.path, "this model's tool calls cannot be held to a schema without an end") from None


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
    if isinstance(kind, list):
        return {"type": [name for name in kind if name in KINDS] or "string"}
    if isinstance(kind, str):
        return {"type": kind}
    return (
        {} if any(keyword in schema for keyword in ("anyOf", "oneOf", "$ref", "enum", "const")) else {"type": "string"}
    )


def split_by_type(schema: dict[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    """Return schemas with one `type` each, which together allow what a schema allows.

    Args:
        schema: The schema, with the definitions that it may reference.
        depth: The number of schemas around this one.

    Raises:
        RecursionError: The schema references itself without an end.
    """
    if depth > MAX_SCHEMA_DEPTH:
        raise RecursionError
    definitions = {name: schema[name] for name in DEFINITIONS if name in schema}
    if isinstance(reference := schema.get("$ref"), str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return split_by_type(rest | _resolve(reference, definitions), depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(keyword), list):
            rest = {key: value for key, value in schema.items() if key != keyword}
            return [part for option in options for part in split_by_type(rest | _object(option), depth + 1)]
    kinds = schema.get("type", KINDS)
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if "number" in kinds:
        kinds = tuple(kind for kind in kinds if kind != "integer")
    return [part for kind in kinds if (part := _of_kind(schema, kind)) is not None]


def _of_kind(schema: dict[str, Any], kind: str) -> dict[str, Any] | None:
    """Return the schema of the values of one type, or None if its `enum` or `const` has none."""
    others = {"number", "integer"} if kind in ("number", "integer") else {kind}
    dropped = ANNOTATIONS - set(DEFINITIONS) | {"type"}
    part = {"type": kind} | {
        key: value
        for key, value in schema.items()
        if key not in dropped and (key not in KIND_BY_KEYWORD or KIND_BY_KEYWORD[key] in others)
    }
    allows = {kind, "integer"} if kind == "number" else {kind}
    if "const" in part and kind_of(part["const"]) not in allows:
        return None
    if isinstance(part.get("enum"), list):
        part["enum"] = [value for value in part["enum"] if kind_of(value) in allows]
        if not part["enum"]:
            return None
    return part


def _resolve(reference: str, definitions: dict[str, Any]) -> dict[str, Any]:
    found: Any = definitions
    for part in reference.removeprefix("#/").split("/"):
        found = _object(found).get(part.replace("~1", "/").replace("~0", "~"))
    if not isinstance(found, dict):
        raise RecursionError  # checked before: the schema compiles
    return found


def _object(schema: Any) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {}


@dataclass(frozen=True, slots=True)
class RawText:
    """The way in which a format writes unquoted strings between markers."""

    excluded: Sequence[str] = ()
    """Texts that a string must not contain, besides its end marker, because they would end it for the parser."""
    kinds: Sequence[str] = ()
    """Other types that the parameter may have. A text that reads as a value of one of them is not a string."""

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
        if literals := [LITERALS[kind] for kind in self.kinds if kind in LITERALS]:
            allowed += rf" & ~/\s*({'|'.join(literals)})\s*/"
        return rules.text_until(end, allowed)

    def _choice(self, rules: LarkRules, texts: Sequence[Any], path: str, end: str) -> str:
        for text in texts:
            if not isinstance(text, str) or not self._can_write([end, *self.excluded], text):
                raise unsupported(path, f"{text!r} cannot be written in this model's tool calls")
        return rules.rule(f"({' | '.join(map(quoted, texts))}) {rules.literal(end)}")

    def _can_write(self, banned: Sequence[str], text: str) -> bool:
        literals = (LITERALS[kind].replace("(?s:.*)", r"[\s\S]*") for kind in self.kinds if kind in LITERALS)
        is_literal = any(re.fullmatch(rf"\s*({literal})\s*", text) for literal in literals)
        return not is_literal and not any(mark in text for mark in banned)


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
