"""JSON objects in text that is still coming: where one ends, what it holds, and how one is written."""

import json
import re
from typing import Any, Final

import msgspec

_MARK: Final = re.compile(r'["{}\[\]]')
_STRING: Final = re.compile(r'(?:[^"\\]+|\\.)*', re.DOTALL)


class ObjectEnd:
    """Finds the end of the JSON object that begins at `start`. Looks at each character once, and checks no syntax."""

    def __init__(self, start: int) -> None:
        self._at = start
        self._depth = 0
        self._quoted = False

    def find(self, text: str) -> int | None:
        """The index after the object's last character, or None while it is open. `text` may only grow."""
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
            if mark[0] in "}]" and self._depth == 1:
                return mark.end()
            self._depth += {"{": 1, "[": 1, "}": -1, "]": -1, '"': 0}[mark[0]]
            self._quoted = mark[0] == '"'
            self._at = mark.end()
        return None


def _string_end(text: str, start: int) -> int:
    """Where the string ends whose characters begin at `start`: at its quote, a backslash without sequel, or nowhere."""
    match = _STRING.match(text, start)
    return match.end() if match else start


def read_object(text: str) -> dict[str, Any] | None:
    """The object that a text is, by the strict rules of JSON; None when it is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_value(value: Any) -> str:
    """JSON text, compact.

    Raises:
        ValueError, TypeError, RecursionError: JSON has no such value, as NaN.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
