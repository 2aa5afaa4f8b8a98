"""Markdown tables of JSON Schemas."""

import json
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]


def fields_table(schema: Schema, note_of: Callable[[str], str] | None = None) -> str:
    """Return a table of an object's fields, or nothing for an object without any.

    Args:
        schema: The object's schema.
        note_of: Gives what a further column says of a field.
    """
    required = set(schema.get("required", ()))
    rows = [
        [
            f"`{name}`" + (" (required)" if name in required else ""),
            type_name(field),
            *([note_of(name)] if note_of else []),
            cell(field.get("description", "")),
        ]
        for name, field in schema.get("properties", {}).items()
    ]
    if not rows:
        return ""
    head = ["field", "type", *(["since"] if note_of else []), "meaning"]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def type_name(schema: Schema) -> str:
    """Return a short name of a type, with links to the types that the page describes."""
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(type_name(member) for member in schema[union]))
    if "allOf" in schema:
        return type_name(schema["allOf"][0])
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{short_name(name)}](#{anchor(name)})"
    if "const" in schema:
        return f"`{_literal(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{_literal(value)}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_item_type(schema)}"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else kind


def heading(name: str) -> str:
    """Return the heading of a type, with its anchor."""
    return f"\n### {short_name(name)} {{#{anchor(name)}}}\n"


def short_name(name: str) -> str:
    """Return a type's name without its module, which stands before names that two modules have."""
    return name.rsplit(".", 1)[-1]


def anchor(name: str) -> str:
    """Return the anchor of a type's heading."""
    return name.lower().replace(".", "-")


def cell(text: str) -> str:
    """Return text that fits into a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _item_type(schema: Schema) -> str:
    members = schema.get("prefixItems") or [schema.get("items") or {}]
    return " or ".join(dict.fromkeys(map(type_name, members)))


def _literal(value: object) -> str:
    """Return a constant as JSON writes it, but strings without their quotes."""
    return value if isinstance(value, str) else json.dumps(value)
