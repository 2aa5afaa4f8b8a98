"""Checks of every line that a worker writes, whatever its content."""

import json
from typing import Any, Final

from lmwire_protocol import Line, RequestError, decode_object, limits

from ..violation import Violation

RULES: Final = ("F-11", "F-12", "F-13", "F-15", "F-18")
"""The rules that this module checks on every line of every run."""

_SEPARATORS: Final = {char.encode(): name for char, name in (("\u2028", "U+2028"), ("\u2029", "U+2029"))} | {
    "\x85".encode(): "U+0085"
}


def read_line(line: bytes) -> dict[str, Any]:
    """Return the object of a line, given without its newline. Members that are null are left out.

    Raises:
        Violation: No worker may write this line.
    """
    if len(line) + 1 >= limits.LINE_OUT_BYTES:
        raise Violation(("F-12",), f"a line shorter than {limits.LINE_OUT_BYTES} bytes", f"{len(line) + 1} bytes")
    try:
        line.decode()
    except UnicodeDecodeError:
        raise Violation(("F-11", "F-15"), "a line of valid UTF-8", line) from None
    for separator, name in _SEPARATORS.items():
        if separator in line:
            raise Violation(("F-13",), f"{name} escaped", line)
    try:
        return decode_object(Line(line))
    except RequestError as error:
        raise Violation(("F-11", "F-18"), f"one JSON object a line ({error.message})", line) from None


def json_bytes(text: str) -> int:
    """Return the length of a text's JSON form without its quotes, with characters beyond ASCII unescaped, in bytes."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2
