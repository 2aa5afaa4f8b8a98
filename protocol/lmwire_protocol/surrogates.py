"""Search for lone surrogates in a line: JSON readers report such a line as malformed or truncated.

This module is imported only to report an error.
"""

import json
import re
from typing import Final

from .errors import RequestError
from .json_value import JsonValue

_POSSIBLE: Final = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""The start of a surrogate, escaped or encoded: a lone one, or one of a valid pair."""
_LONE: Final = re.compile("[\ud800-\udfff]")


def surrogate_error(line: bytes) -> RequestError | None:
    """Return the error for a line whose only fault is a lone surrogate, or None when it has another fault."""
    if not _POSSIBLE.search(line):
        return None
    try:
        value = json.loads(line.decode("utf-8", "surrogatepass"), parse_int=str, parse_float=str)
        found = _find_surrogate(value, "")
    except (ValueError, RecursionError):
        return None
    if found is None:
        return None
    path, char = found
    where = f"`{path}`" if path else "the name of a field"
    problem = f"{where} holds the lone surrogate U+{ord(char):04X}, which is not valid text"
    remedy = "write a character beyond U+FFFF as a pair of escapes, and replace what has no partner with U+FFFD"
    return RequestError("parse_error", f"{problem}; {remedy}", field=path or None)


def _find_surrogate(value: JsonValue, path: str) -> tuple[str, str] | None:
    """Return where the first lone surrogate within a value is, and which it is."""
    if isinstance(value, str):
        return (path, lone[0]) if (lone := _LONE.search(value)) else None
    if isinstance(value, list):
        places = ((item, f"{path}[{place}]") for place, item in enumerate(value))
    elif isinstance(value, dict):
        if lone := _LONE.search("".join(value)):
            return path, lone[0]
        places = ((item, f"{path}.{name}" if path else name) for name, item in value.items())
    else:
        return None
    return next((found for item, where in places if (found := _find_surrogate(item, where))), None)
