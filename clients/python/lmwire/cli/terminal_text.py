"""Text for a terminal: control characters removed, dimmed, trimmed."""

import os
from typing import Final

import lmwire
from lmwire_protocol.printable import one_line

# An answer must not control the terminal. Joiners and direction marks stay: some scripts and emoji need them.
_CONTROLS: Final = dict.fromkeys(
    [
        *(*range(9), *range(11, 32), *range(127, 160)),  # escape sequences, and other controls
        *(0x2028, 0x2029),  # line ends
        *(*range(0x202A, 0x202F), *range(0x2066, 0x206A)),  # what turns the order of characters around
    ]
)


def strip_controls(text: str) -> str:
    """Return a part of an answer without the characters that a terminal would obey."""
    return text.translate(_CONTROLS)


def dim(text: str) -> str:
    """Return the text in the terminal's fainter style, if it has one."""
    return text if os.environ.get("TERM") == "dumb" else f"\x1b[2m{text}\x1b[0m"


def format_call(call: lmwire.ToolCall) -> str:
    """Return a tool call for a person to read: `name({"argument": …})`."""
    import json  # an answer without calls needs it not

    return one_line(f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})")


class NewlineTrimmer:
    """Remove the empty lines at both ends of a text that arrives in parts."""

    def __init__(self) -> None:
        self._started = False
        self._newlines = ""

    def add(self, text: str) -> str:
        """Take the next part, and return all text that is certain now and was not returned before."""
        text = self._newlines + text
        trimmed = text.rstrip("\n")
        self._newlines = text[len(trimmed) :]
        if not self._started:
            trimmed = trimmed.lstrip("\n")
            self._started = bool(trimmed)
            self._newlines = self._newlines if trimmed else ""
        return trimmed
