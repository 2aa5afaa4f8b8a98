"""JSON objects in text that is incomplete: finding the end, reading and writing."""

import json
import re
from typing import Any, Final

import msgspec

from lmwire_protocol.imports import lazy_pattern

_MARK: Final = lazy_pattern(r'["{}\[\]<]')
_STRING: Final = lazy_pattern(r'(?:[^"\\]+|\\.)*', re.DOTALL)


class ObjectEnd:
    """Finds the end of a JSON object. Reads each character once, and does not check syntax.

    Args:
        start: The start of the object in the text.
    """

    def __init__(self, start: int) -> None:
        self._at = start
        self._depth = 0
        self._quoted = False

    def find(self, text: str) -> int | None:
        """Return the index after the object's last character, or None if it is incomplete.

        If a marker starts before the object is complete, the index is that of the marker.

        Args:
            text: The text, which must start with the text of the previous call.
        """
        while self._at < len(text):
            if self._quoted:
                self._at = _string_end(text, self._at)
                if self._at == len(text) or text[self._at] == "\\":
                    break
                self._quoted = False
                self._at += 1
                continue
            mark = _MARK.search(text, self._at)
            if mark is None:
                self._at = len(text)
                break
            if mark[0] == "<":
                return mark.start()
            if mark[0] in "}]" and self._depth == 1:
                return mark.end()
            self._depth += {"{": 1, "[": 1, "}": -1, "]": -1, '"': 0}[mark[0]]
            self._quoted = mark[0] == '"'
            self._at = mark.end()
        return None


def _string_end(text: str, start: int) -> int:
    """Return the end of a string's characters from `start` on: its quote, an incomplete escape, or the text's end."""
    match = _STRING.match(text, start)
    return match.end() if match else start


def read_object(text: str) -> dict[str, Any] | None:
    """Return the object of a JSON text, or None if the text is not valid JSON or not an object."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_value(value: Any) -> str:
    """Return a value as compact JSON text.

    Raises:
        ValueError, TypeError, RecursionError: JSON has no such value (such as NaN).
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
