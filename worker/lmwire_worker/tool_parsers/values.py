"""Values that stand between tags without quotes: their types by the schema, and their texts."""

import ast
import json
import warnings
from collections.abc import Mapping
from typing import Any, Final

from lmwire_protocol.imports import lazy_pattern

Kinds = frozenset[str]
"""Names of JSON Schema's types."""

_MAX_DEPTH: Final = 16
"""Maximum number of references and choices inside one another. Beyond it, any type is possible."""
_MAX_LITERAL_CHARACTERS: Final = 1_000_000
_LEADING_ZEROS: Final = lazy_pattern(r"(-?)0+(\d{1,18})")
_WORDS: Final = {"true": True, "false": False, "null": None, "none": None}
_MISSING: Final = object()


def kinds_of(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> Kinds | None:
    """Return the types that a schema allows; None if any type is possible.

    Args:
        schema: The schema, whatever the host sent.
        definitions: The schema that local references point into.
        depth: The number of schemas around this one.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return kinds_of(_resolve(reference, definitions), definitions, depth + 1)
    found = schema.get("type")
    if isinstance(found, str):
        return frozenset((found,))
    if isinstance(found, list) and found and all(isinstance(kind, str) for kind in found):
        return frozenset(found)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(keyword), list) and options:
            parts = [kinds_of(option, definitions, depth + 1) for option in options]
            return None if None in parts else frozenset().union(*(part or () for part in parts))
    if isinstance(values := schema.get("enum"), list) and values:
        return frozenset(map(kind_of, values))
    if "const" in schema:
        return frozenset((kind_of(schema["const"]),))
    return frozenset(("object",)) if "properties" in schema else None


def kind_of(value: Any) -> str:
    """Return the name of a value's type in JSON Schema."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
    return "object"


def read_text(text: str, kinds: Kinds | None) -> Any:
    """Return the value of a text that has no quotes.

    A string is the text as it is, with all white space, and its quotes if the schema allows a string. Other values may
    be in JSON or Python. A value that JSON has not, such as infinity, stays text.

    Args:
        text: The text.
        kinds: The types that the schema allows; None for any.
    """
    if kinds == {"string"}:
        return text
    value = _literal(text.strip(), kinds)
    if value is _MISSING or not _is_json(value) or (isinstance(value, str) and kinds and "string" in kinds):
        return text
    if kinds is None or kind_of(value) in kinds or (kind_of(value) == "integer" and "number" in kinds):
        return value
    return text if "string" in kinds else value


def write_text(value: Any) -> str:
    """Return the text of a value between tags: a string as it is, and JSON for others."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _literal(word: str, kinds: Kinds | None) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        pass
    if kinds and "integer" in kinds and (digits := _LEADING_ZEROS.fullmatch(word)):
        return int("".join(digits.groups()))
    if word.lower() in _WORDS and (kinds is None or kind_of(_WORDS[word.lower()]) in kinds):
        return _WORDS[word.lower()]
    if not word.startswith(("{", "[", "(")) or len(word) > _MAX_LITERAL_CHARACTERS:
        return _MISSING
    try:
        with warnings.catch_warnings(action="ignore"):  # about invalid escapes in strings
            return ast.literal_eval(word)
    except Exception:  # a model's text can fail Python's parser in many ways
        return _MISSING


def _is_json(value: Any) -> bool:
    if value is None or isinstance(value, str | int):
        return True
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def resolve_kind(schema: Any, kind: str, definitions: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """Return the part of a schema that describes values of one type; empty if there is none.

    Args:
        schema: The schema, whatever the host sent.
        kind: The type.
        definitions: The schema that local references point into.
        depth: The number of schemas around this one.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return resolve_kind(_resolve(reference, definitions), kind, definitions, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        for option in options if isinstance(options := schema.get(keyword), list) else ():
            kinds = kinds_of(option, definitions, depth + 1)
            if kinds is None or kind in kinds:
                return resolve_kind(option, kind, definitions, depth + 1)
    return schema
