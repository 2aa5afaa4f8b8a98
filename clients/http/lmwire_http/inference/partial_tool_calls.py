"""Calls that are cut off: what a client is shown of their arguments, so that none of them passes for a whole one."""

from typing import Final

_CLOSING: Final = "} \t\r\n"
_OPENING: Final = "{["
_CLOSERS: Final = {"{": "}", "[": "]"}


class Arguments:
    """What was passed on of a call's arguments, and what is held back: the braces that may make them whole."""

    def __init__(self) -> None:
        self._passed = False
        self._held = ""

    def pass_on(self, arguments: str, complete: bool | None) -> str:
        """Return the text that can be sent now.

        Args:
            arguments: The next piece.
            complete: Whether the call is whole; None while it goes on.
        """
        written = self._held + arguments
        if complete:
            return written
        passed = written.rstrip(_CLOSING)
        self._held = written[len(passed) :]
        if complete is False and not (passed or self._passed):
            return "{"  # nothing at all would pass for a call without arguments
        self._passed = self._passed or bool(passed)
        return passed


def whole_members(arguments: str) -> str:
    """Return the JSON text of an object with those members of cut arguments that are whole.

    Args:
        arguments: The beginning of an object's JSON text.
    """
    whole, open, in_string, escaped = "{}", "", False, False
    for place, character in enumerate(arguments):
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in _OPENING:
            open += character
            whole = _closed(arguments[: place + 1], open)
        elif character in "}]":
            open = open[:-1]
            whole = _closed(arguments[: place + 1], open)
        elif character == ",":
            whole = _closed(arguments[:place], open)
    return whole


def _closed(text: str, open: str) -> str:
    return text + "".join(_CLOSERS[bracket] for bracket in reversed(open))
