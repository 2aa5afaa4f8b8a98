"""Decoding of lines to commands. An error names the field at fault."""

import re
from typing import TYPE_CHECKING, Any

import msgspec

from .commands import COMMANDS, Command
from .errors import RequestError
from .framing import Line
from .limits import ID_BYTES, LINE_IN_BYTES
from .messages import FREE_FORM
from .tool_results import with_call_ids

if TYPE_CHECKING:
    from .json_value import JsonValue

_LEADING_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.){1,800}")')


def usable_id(value: object) -> bool:
    """Return whether `value` can be a request's id: a string of 1 to 128 bytes."""
    return isinstance(value, str) and 0 < len(value.encode()) <= ID_BYTES


def recover_id(line: bytes) -> str | None:
    """Return the id of a line that cannot be read as a whole, if the id is the first member and usable."""
    if not (match := _LEADING_ID.match(line)):
        return None
    try:
        value = msgspec.json.decode(match[1])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if usable_id(value) else None


def decode_object(line: Line) -> dict[str, Any]:
    """Return a line's JSON object without the fields that are null.

    Raises:
        RequestError: parse_error or line_too_long.
    """
    if line.overlong:
        raise RequestError("line_too_long", f"the line is longer than {LINE_IN_BYTES} bytes and was skipped")
    try:
        value = without_nulls(msgspec.json.decode(line.data))
    except RecursionError:
        raise RequestError("parse_error", "the line is nested too deep; 100 levels always work") from None
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise _unreadable(line.data, error) from None
    if not isinstance(value, dict):
        raise RequestError("parse_error", f"the line is JSON but not an object: {type(value).__name__}")
    return value


def _unreadable(line: bytes, error: UnicodeDecodeError | msgspec.DecodeError) -> RequestError:
    from .surrogates import surrogate_error  # imported here to keep the start of a process short

    if lone := surrogate_error(line):
        return lone
    if isinstance(error, UnicodeDecodeError):
        return RequestError("parse_error", f"the line is not UTF-8: {error.reason}")
    hint = "; remove the byte order mark" if line.startswith(b"\xef\xbb\xbf") else ""
    return RequestError("parse_error", f"the line is not JSON: {error}{hint}")


def decode_command(fields: dict[str, Any]) -> Command:
    """Return the command that an object holds. The `id` is ignored.

    Raises:
        RequestError: unknown_command or invalid_request, with the field's path.
    """
    fields = {name: value for name, value in fields.items() if name != "id"}
    name = fields.pop("cmd", None)
    if name is None:
        raise RequestError("invalid_request", f"`cmd` is missing; it is one of {', '.join(COMMANDS)}", field="cmd")
    if not isinstance(name, str):
        raise RequestError("invalid_request", "`cmd` must be a string", field="cmd")
    if (command := COMMANDS.get(name)) is None:
        from .validation_errors import nearest  # imported here to keep the start of a process short

        raise RequestError("unknown_command", f"unknown command {name!r}{nearest(name, COMMANDS)}", field="cmd")
    try:
        return with_call_ids(msgspec.convert(fields, command, str_keys=True))
    except msgspec.ValidationError as error:
        from .validation_errors import validation_error  # imported here to keep the start of a process short

        raise validation_error(error, command, fields) from None


def without_nulls(value: "JsonValue") -> "JsonValue":
    """Return a line's value without the members that are null, which count as absent."""
    if isinstance(value, dict):
        return {
            key: item if key in FREE_FORM and isinstance(item, dict) else without_nulls(item)
            for key, item in value.items()
            if item is not None
        }
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
