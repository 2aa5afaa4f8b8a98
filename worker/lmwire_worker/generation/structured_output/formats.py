"""What an answer must be, as llguidance's Lark, and what is wrong with it, with its path in the request."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from lmwire_protocol.formats import ChoiceFormat, Format, JsonObjectFormat, JsonSchemaFormat, LarkFormat, RegexFormat

from .bounds import LINKS, PATTERN_CHARACTERS, check_count, check_size, invalid
from .vocabulary import FOREIGN, GrammarTooComplex, Vocabulary

COMPACT: Final = {"whitespace_flexible": False}
SEARCHED: Final = 3
"""Parts that may take all of their time to compile while the one at fault is searched for. Then the innermost one found
so far is named."""
IN_MAPS: Final = ("$defs", "definitions", "properties", "patternProperties")
IN_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
ALONE: Final = ("items", "additionalProperties", "additionalItems")
ANNOTATIONS: Final = ("$defs", "definitions", "type", "title", "description", "default", "examples", "$comment")


def format_grammar(format: Format, vocabulary: Vocabulary) -> str:
    """The format as a Lark grammar, whose start is `start`. That it compiles is not certain; see `check_format`.

    Raises:
        RequestError: invalid_request, with the path of what is wrong; unsupported.
    """
    match format:
        case JsonObjectFormat():
            return f"start: {json_rule({'type': 'object'})}"
        case JsonSchemaFormat():
            check_size(format.schema, "format.schema")
            _refuse_specials(format.schema, "format.schema", vocabulary)
            return f"start: {json_rule(format.schema)}"
        case RegexFormat():
            _ = vocabulary.view  # says what to do where llguidance is missing
            from llguidance import regex_to_lark

            check_count(len(format.pattern), PATTERN_CHARACTERS, "characters", "format.pattern")
            return f"start: /{regex_to_lark(format.pattern, '')}/\n{FOREIGN}"
        case LarkFormat():
            rules = sum(":" in line for line in format.grammar.splitlines()) + format.grammar.count('"$ref"')
            check_count(rules, LINKS, "rules", "format.grammar")
            return f"{format.grammar}\n{FOREIGN}"
        case ChoiceFormat():
            for index, text in enumerate(format.choices):
                _refuse_special(text, f"format.choices[{index}]", vocabulary)
            return f"start: {' | '.join(json.dumps(text, ensure_ascii=False) for text in format.choices)}"


def check_format(format: Format, vocabulary: Vocabulary) -> None:
    """Raises invalid_request when the format's grammar does not compile, with the path of what is wrong."""
    if isinstance(format, JsonSchemaFormat):
        check_schema(format.schema, "format.schema", vocabulary)
    elif fault := vocabulary.fault(format_grammar(format, vocabulary)):
        raise invalid("format.pattern" if isinstance(format, RegexFormat) else "format.grammar", str(fault))


def json_rule(schema: dict[str, Any], **options: Any) -> str:
    """Lark for compact JSON that a schema holds for.

    Args:
        schema: A JSON Schema that was checked.
        **options: llguidance's, of JSON grammars.
    """
    return f"%json {json.dumps(schema | {'x-guidance': COMPACT | options}, ensure_ascii=False)}"


def check_schema(schema: dict[str, Any], path: str, vocabulary: Vocabulary) -> None:
    """Raises invalid_request when a schema is none, or asks for what cannot be enforced; with the path of that part."""
    check_size(schema, path)
    _refuse_specials(schema, path, vocabulary)
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    exhausted = 0

    def fault_of(part: dict[str, Any]) -> str:
        nonlocal exhausted
        if exhausted > SEARCHED:
            return ""
        fault = vocabulary.fault(f"start: {json_rule(definitions | part)}")
        exhausted += isinstance(fault, GrammarTooComplex)
        return str(fault or "")

    if fault := fault_of(schema):
        raise invalid(_locate(schema, path, fault, fault_of), fault)


def _locate(schema: dict[str, Any], path: str, fault: str, fault_of: Callable[[dict[str, Any]], str]) -> str:
    """The innermost part that has the same fault by itself."""
    for step, part in _subschemas(schema):
        if fault_of(part) == fault:
            return _locate(part, path + step, fault, fault_of)
    kind = {"type": schema["type"]} if "type" in schema else {}
    for name, value in schema.items():
        if name not in ANNOTATIONS and fault_of(kind | {name: value}) == fault:
            return f"{path}.{name}"
    return f"{path}.type" if kind and fault_of(kind) == fault else path


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas right inside one, with the way to each."""
    for name in IN_MAPS:
        if isinstance(parts := schema.get(name), dict):
            yield from ((f".{name}.{key}", part) for key, part in parts.items() if isinstance(part, dict))
    for name in IN_LISTS:
        if isinstance(parts := schema.get(name), list):
            yield from ((f".{name}[{index}]", part) for index, part in enumerate(parts) if isinstance(part, dict))
    for name in ALONE:
        if isinstance(part := schema.get(name), dict):
            yield f".{name}", part


def _refuse_specials(schema: dict[str, Any], path: str, vocabulary: Vocabulary) -> None:
    """Fixed texts of a schema become fixed texts of the answer."""
    for name in ("const", "enum"):
        if name in schema:
            _refuse_special(json.dumps(schema[name], ensure_ascii=False), f"{path}.{name}", vocabulary)
    for name in schema.get("properties", {}) if isinstance(schema.get("properties"), dict) else ():
        _refuse_special(name, f"{path}.properties", vocabulary)
    for step, part in _subschemas(schema):
        _refuse_specials(part, path + step, vocabulary)


def _refuse_special(text: str, path: str, vocabulary: Vocabulary) -> None:
    if special := vocabulary.special_in(text):
        raise invalid(path, f"{special!r} is a special token of this model, which its text cannot hold")
