"""Response formats of chat completions, and their conversion for the client library."""

from typing import Any, TypeAlias

from msgspec import Struct

import lmwire_protocol as wire

from ..limits import JsonObject


class TextFormat(Struct, tag_field="type", tag="text", kw_only=True, forbid_unknown_fields=True):
    """Any text."""


class JsonObjectFormat(Struct, tag_field="type", tag="json_object", kw_only=True, forbid_unknown_fields=True):
    """A JSON object."""

    schema: JsonObject | None = None
    """A JSON Schema that the object follows, as llama.cpp and others have it; any object if absent."""


class JsonSchema(Struct, kw_only=True, forbid_unknown_fields=True):
    """A JSON Schema and its name."""

    name: str | None = None
    """Ignored, as is `description`: the model does not see them."""
    description: str | None = None
    schema: JsonObject | None = None
    """Any JSON object if absent."""
    strict: bool | None = None
    """Ignored: the answer always follows the schema, token by token."""


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", kw_only=True, forbid_unknown_fields=True):
    """JSON that follows a schema."""

    json_schema: JsonSchema


ResponseFormat: TypeAlias = TextFormat | JsonObjectFormat | JsonSchemaFormat


def wire_format(wanted: ResponseFormat) -> wire.Format | None:
    """Return the format as the client library takes it; None for any text."""
    match wanted:
        case TextFormat():
            return None
        case JsonObjectFormat(schema=schema):
            return wire_schema(schema)
        case JsonSchemaFormat():
            return wire_schema(wanted.json_schema.schema)


def wire_schema(schema: dict[str, Any] | None) -> wire.Format:
    """Return the format for a schema; any JSON object without one."""
    return wire.JsonObjectFormat() if schema is None else wire.JsonSchemaFormat(schema=schema)
