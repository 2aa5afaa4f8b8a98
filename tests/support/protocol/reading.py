"""Lines as the two ends of a version 1 session read them, and as the schema judges them."""

from functools import cache
from typing import Any

import jsonschema
import msgspec

from lmwire_conformance.vector import without_nulls
from lmwire_protocol import (
    COMMANDS,
    Command,
    LineSplitter,
    RequestError,
    decode_command,
    decode_object,
    events,
    limits,
    recover_id,
    usable_id,
)
from lmwire_protocol.schema import schema

_SCHEMA = schema()


def read_command(line: bytes) -> tuple[str | None, Command | RequestError]:
    """Read a line as a worker does. Return the id to answer to, and the command or the error."""
    (read,) = LineSplitter(limits.LINE_IN_BYTES).feed(line + b"\n")
    try:
        fields = decode_object(read)
    except RequestError as error:
        return recover_id(read.data), error
    id = fields.get("id")
    if not usable_id(id):
        return None, RequestError("invalid_request", "no usable id", field="id")
    try:
        return id, decode_command(fields)
    except RequestError as error:
        return id, error


def read_event(line: bytes, command: str | None = None) -> events.Event | None:
    """Read a line as a host does that sent `command`. Return None for an unknown event.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: no worker may write the line.
    """
    value = without_nulls(msgspec.json.decode(line))
    if not isinstance(value, dict) or not isinstance(value.get("event"), str):
        raise msgspec.ValidationError("not an event")
    form = events.EVENTS.get(value["event"])
    if form is events.Done:
        assert command is not None
        form = COMMANDS[command].done
    return form and msgspec.convert(value, form)


def schema_accepts(kind: str, value: Any) -> bool:
    """Return whether schema.json accepts `value` as a `kind`, a name in its `$defs`."""
    return _judge(kind).is_valid(value)


def event_kind(event: str, command: str | None) -> str:
    """Return the schema's name for a `done` of a command, or for any other event."""
    return COMMANDS[command].done.__name__ if event == "done" and command else "Event"


@cache
def _judge(kind: str) -> jsonschema.Draft202012Validator:
    """Return the validator of a kind, kept since its first use takes the time to resolve the whole schema."""
    return jsonschema.Draft202012Validator({**_SCHEMA, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})
