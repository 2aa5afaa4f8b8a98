"""What an answer is to be, in chat completions' shape, and on the wire."""

from typing import Any, TypeAlias

from msgspec import Struct

import lmwire_protocol as wire


class TextFormat(Struct, tag_field="type", tag="text", kw_only=True, forbid_unknown_fields=True):
    """Any text."""


class JsonObjectFormat(Struct, tag_field="type", tag="json_object", kw_only=True, forbid_unknown_fields=True):
    """Any JSON object."""


class JsonSchema(Struct, kw_only=True, forbid_unknown_fields=True):
    """A schema, and what it is called."""

    name: str | None = None
    """Harmless, as `description` is: the model is not told of it."""
    description: str | None = None
    schema: dict[str, Any] | None = None
    """Any JSON object where there is none."""
    strict: bool | None = None
    """Harmless: the schema is always held to, token by token."""


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema", kw_only=True, forbid_unknown_fields=True):
    """JSON that a schema holds for."""

    json_schema: JsonSchema


ResponseFormat: TypeAlias = TextFormat | JsonObjectFormat | JsonSchemaFormat


def wire_format(wanted: ResponseFormat) -> wire.Format | None:
    """The format as the client library takes it; None for any text."""
    match wanted:
        case TextFormat():
            return None
        case JsonObjectFormat():
            return wire.JsonObjectFormat()
        case JsonSchemaFormat():
            return wire_schema(wanted.json_schema.schema)


def wire_schema(schema: dict[str, Any] | None) -> wire.Format:
    """The format of a schema; any JSON object without one."""
    return wire.JsonObjectFormat() if schema is None else wire.JsonSchemaFormat(schema=schema)
