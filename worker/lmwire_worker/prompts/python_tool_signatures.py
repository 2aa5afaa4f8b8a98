"""JSON Schemas and calls as Python: what models that learnt tools as Python functions are shown."""

import json
from keyword import iskeyword
from typing import Any, Final

from lmwire_protocol import Function

_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}
_SAID: Final = frozenset({"type", "description", "enum", "default", "title"})
"""Keywords that the signature itself shows."""


def signature(function: Function) -> str:
    """The head of a Python function, with a docstring that describes it and its parameters."""
    properties = _mapping(function.parameters.get("properties"))
    required = function.parameters.get("required")
    needed = [name for name in properties if isinstance(required, list) and name in required]
    optional = [name for name in properties if name not in needed]
    heads = [f"{name}: {_type(properties[name])}" for name in needed]
    for name in optional:
        default = _mapping(properties[name]).get("default")
        heads.append(f"{name}: {_type(properties[name])} = {literal(default)}")
    described = [(name, _described(_mapping(properties[name]))) for name in needed + optional]
    notes = [f"    {name}: {text}" for name, text in described if text]
    doc = "\n\n".join(text for text in (function.description, "\n".join(["Args:", *notes]) if notes else "") if text)
    quoted = f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""'
    body = "\n".join(f"    {line}".rstrip() for line in quoted.split("\n"))
    return f"def {function.name}({', '.join(heads)}):\n{body}"


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A call as Python writes it, every argument by name."""
    if all(key.isidentifier() and not iskeyword(key) for key in arguments):
        return f"{name}({', '.join(f'{key}={literal(value)}' for key, value in arguments.items())})"
    return f"{name}(**{literal(arguments)})"


def literal(value: Any) -> str:
    """A JSON value as a Python literal."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    return repr(value)


def _type(schema: Any) -> str:
    schema = _mapping(schema)
    enum, types = schema.get("enum"), schema.get("type")
    if isinstance(enum, list) and enum:
        return f"Literal[{', '.join(map(literal, enum))}]"
    if isinstance(types, list):
        return " | ".join(_TYPES.get(name, "Any") for name in types if isinstance(name, str)) or "Any"
    if types == "array" and schema.get("items"):
        return f"list[{_type(schema['items'])}]"
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return " | ".join(map(_type, schema[keyword])) or "Any"
    return _TYPES.get(types, "Any") if isinstance(types, str) else "Any"


def _described(schema: dict[str, Any]) -> str:
    """A parameter's description, and its schema where the type alone leaves something out."""
    more = {key: value for key, value in schema.items() if key not in _SAID}
    if set(more) == {"items"} and set(_mapping(more["items"])) <= {"type", "enum"}:
        more = {}
    text = str(schema.get("description", ""))
    return f"{text} JSON Schema: {json.dumps(more, ensure_ascii=False)}".strip() if more else text


def _mapping(value: Any) -> dict[str, Any]:
    """Schemas are the host's: what should be an object may be anything."""
    return value if isinstance(value, dict) else {}
