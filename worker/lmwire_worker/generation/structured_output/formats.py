"""Grammars of a request's `format` in llguidance's Lark, and the search for the part of a schema that is at fault."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from lmwire_protocol.formats import ChoiceFormat, Format, JsonObjectFormat, JsonSchemaFormat, LarkFormat, RegexFormat

from .size_limits import MAX_PATTERN_CHARACTERS, MAX_REFERENCES, check_count, check_size, invalid_request
from .vocabulary import HOST_COMMENT, GrammarTooComplex, Vocabulary

COMPACT_JSON: Final = {"whitespace_flexible": False}
MAX_SLOW_PARTS: Final = 3
"""Maximum number of parts that may exceed the compiler's limits during the search for the part at fault. After that,
the error names the innermost part found."""
SCHEMA_MAPS: Final = ("$defs", "definitions", "properties", "patternProperties")
SCHEMA_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SINGLE_SCHEMAS: Final = ("items", "additionalProperties", "additionalItems")
ANNOTATIONS: Final = ("$defs", "definitions", "type", "title", "description", "default", "examples", "$comment")


def format_grammar(format: Format, vocabulary: Vocabulary) -> str:
    """Return the format as a Lark grammar with the rule `start`. It may not compile; see `check_format`.

    Args:
        format: The request's `format`.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: invalid_request, with the path of the part at fault; unsupported.
    """
    match format:
        case JsonObjectFormat():
            return f"start: {json_rule({'type': 'object'})}"
        case JsonSchemaFormat():
            check_size(format.schema, "format.schema")
            _refuse_special_tokens(format.schema, "format.schema", vocabulary)
            return f"start: {json_rule(format.schema)}"
        case RegexFormat():
            _ = vocabulary.llguidance_tokenizer  # says what to do where llguidance is missing
            from llguidance import regex_to_lark

            check_count(len(format.pattern), MAX_PATTERN_CHARACTERS, "characters", "format.pattern")
            return f"start: /{regex_to_lark(format.pattern, '')}/\n{HOST_COMMENT}"
        case LarkFormat():
            rules = sum(":" in line for line in format.grammar.splitlines()) + format.grammar.count('"$ref"')
            check_count(rules, MAX_REFERENCES, "rules", "format.grammar")
            return f"{format.grammar}\n{HOST_COMMENT}"
        case ChoiceFormat():
            for index, text in enumerate(format.choices):
                _refuse_special_token(text, f"format.choices[{index}]", vocabulary)
            return f"start: {' | '.join(json.dumps(text, ensure_ascii=False) for text in format.choices)}"


def check_format(format: Format, vocabulary: Vocabulary) -> None:
    """Check that the format's grammar compiles.

    Args:
        format: The request's `format`.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: invalid_request, with the path of the part at fault.
    """
    if isinstance(format, JsonSchemaFormat):
        check_schema(format.schema, "format.schema", vocabulary)
    elif fault := vocabulary.find_error(format_grammar(format, vocabulary)):
        raise invalid_request("format.pattern" if isinstance(format, RegexFormat) else "format.grammar", str(fault))


def json_rule(schema: dict[str, Any], **options: Any) -> str:
    """Return Lark for compact JSON that is valid under a schema.

    Args:
        schema: A JSON Schema that was checked.
        **options: Options of llguidance's JSON grammars.
    """
    return f"%json {json.dumps(schema | {'x-guidance': COMPACT_JSON | options}, ensure_ascii=False)}"


def check_schema(schema: dict[str, Any], path: str, vocabulary: Vocabulary) -> None:
    """Check that a schema is valid and can be enforced.

    Args:
        schema: The schema.
        path: The schema's path in the request.
        vocabulary: The model's vocabulary.

    Raises:
        RequestError: invalid_request, with the path of the part at fault.
    """
    check_size(schema, path)
    _refuse_special_tokens(schema, path, vocabulary)
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    exhausted = 0

    def fault_of(part: dict[str, Any]) -> str:
        nonlocal exhausted
        if exhausted > MAX_SLOW_PARTS:
            return ""
        fault = vocabulary.find_error(f"start: {json_rule(definitions | part)}")
        exhausted += isinstance(fault, GrammarTooComplex)
        return str(fault or "")

    if fault := fault_of(schema):
        raise invalid_request(_locate(schema, path, fault, fault_of), fault)


def _locate(schema: dict[str, Any], path: str, fault: str, fault_of: Callable[[dict[str, Any]], str]) -> str:
    """Return the path of the innermost part that has the same error by itself."""
    for step, part in _subschemas(schema):
        if fault_of(part) == fault:
            return _locate(part, path + step, fault, fault_of)
    kind = {"type": schema["type"]} if "type" in schema else {}
    for name, value in schema.items():
        if name not in ANNOTATIONS and fault_of(kind | {name: value}) == fault:
            return f"{path}.{name}"
    return f"{path}.type" if kind and fault_of(kind) == fault else path


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the direct subschemas of a schema, with their relative paths."""
    for name in SCHEMA_MAPS:
        if isinstance(parts := schema.get(name), dict):
            yield from ((f".{name}.{key}", part) for key, part in parts.items() if isinstance(part, dict))
    for name in SCHEMA_LISTS:
        if isinstance(parts := schema.get(name), list):
            yield from ((f".{name}[{index}]", part) for index, part in enumerate(parts) if isinstance(part, dict))
    for name in SINGLE_SCHEMAS:
        if isinstance(part := schema.get(name), dict):
            yield f".{name}", part


def _refuse_special_tokens(schema: dict[str, Any], path: str, vocabulary: Vocabulary) -> None:
    """Refuse a schema whose fixed texts contain special tokens: they would be part of the answer."""
    for name in ("const", "enum"):
        if name in schema:
            _refuse_special_token(json.dumps(schema[name], ensure_ascii=False), f"{path}.{name}", vocabulary)
    for name in schema.get("properties", {}) if isinstance(schema.get("properties"), dict) else ():
        _refuse_special_token(name, f"{path}.properties", vocabulary)
    for step, part in _subschemas(schema):
        _refuse_special_tokens(part, path + step, vocabulary)


def _refuse_special_token(text: str, path: str, vocabulary: Vocabulary) -> None:
    if special := vocabulary.find_special_token(text):
        raise invalid_request(path, f"{special!r} is a special token of this model, which its text cannot hold")
