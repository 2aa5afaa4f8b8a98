"""Tools as Python, for models that were trained to call Python functions."""

import json
from typing import Any, Final

from lmwire_protocol import Function

from ..tool_parsers import literal, parameters_in_order

_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}
_SHOWN_KEYWORDS: Final = frozenset({"type", "description", "enum", "default", "title"})
"""Keywords of JSON Schema that the signature shows."""


def signature(function: Function) -> str:
    """Return the signature of a Python function, with a docstring that describes it and its parameters."""
    parameters = parameters_in_order(function.parameters)
    required = function.parameters.get("required")
    heads = []
    for name, schema in parameters.items():
        optional = not (isinstance(required, list) and name in required)
        default = f" = {literal(_as_mapping(schema).get('default'))}" if optional else ""
        heads.append(f"{name}: {_annotation(schema)}{default}")
    described = [(name, _parameter_doc(_as_mapping(schema))) for name, schema in parameters.items()]
    notes = [f"    {name}: {text}" for name, text in described if text]
    doc = "\n\n".join(text for text in (function.description, "\n".join(["Args:", *notes]) if notes else "") if text)
    quoted = f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""'
    body = "\n".join(f"    {line}".rstrip() for line in quoted.split("\n"))
    return f"def {function.name}({', '.join(heads)}):\n{body}"


def _annotation(schema: Any) -> str:
    schema = _as_mapping(schema)
    enum, types = schema.get("enum"), schema.get("type")
    if isinstance(enum, list) and enum:
        return f"Literal[{', '.join(map(literal, enum))}]"
    if isinstance(types, list):
        return " | ".join(_TYPES.get(name, "Any") for name in types if isinstance(name, str)) or "Any"
    if types == "array" and schema.get("items"):
        return f"list[{_annotation(schema['items'])}]"
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return " | ".join(map(_annotation, schema[keyword])) or "Any"
    return _TYPES.get(types, "Any") if isinstance(types, str) else "Any"


def _parameter_doc(schema: dict[str, Any]) -> str:
    """Return a parameter's description, with its JSON Schema if the annotation does not say everything."""
    more = {key: value for key, value in schema.items() if key not in _SHOWN_KEYWORDS}
    if set(more) == {"items"} and set(_as_mapping(more["items"])) <= {"type", "enum"}:
        more = {}
    text = str(schema.get("description", ""))
    return f"{text} JSON Schema: {json.dumps(more, ensure_ascii=False)}".strip() if more else text


def _as_mapping(value: Any) -> dict[str, Any]:
    """Return a part of a schema if it is an object, and an empty one otherwise: hosts may send anything."""
    return value if isinstance(value, dict) else {}
