"""Arguments of tool calls that may be cut off. Clients must not take partial arguments for complete ones."""

from typing import Final

_CLOSING: Final = "} \t\r\n"
_OPENING: Final = "{["
_CLOSERS: Final = {"{": "}", "[": "]"}


class ArgumentsBuffer:
    """The arguments of a streamed call. Closing braces that would make partial arguments valid are held back."""

    def __init__(self) -> None:
        self._has_sent = False
        self._held = ""

    def next_delta(self, arguments: str, complete: bool | None) -> str:
        """Return the text that can be sent now.

        Args:
            arguments: The next part of the arguments.
            complete: Whether the call is complete; None while it continues.
        """
        text = self._held + arguments
        if complete:
            return text
        sendable = text.rstrip(_CLOSING)
        self._held = text[len(sendable) :]
        if complete is False and not (sendable or self._has_sent):
            return "{"  # an empty text would look like a call without arguments
        self._has_sent = self._has_sent or bool(sendable)
        return sendable


def complete_members(arguments: str) -> str:
    """Return the JSON text of an object with only the complete members of partial arguments.

    Args:
        arguments: The start of an object's JSON text.
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
            whole = _close_brackets(arguments[: place + 1], open)
        elif character in "}]":
            open = open[:-1]
            whole = _close_brackets(arguments[: place + 1], open)
        elif character == ",":
            whole = _close_brackets(arguments[:place], open)
    return whole


def _close_brackets(text: str, open: str) -> str:
    return text + "".join(_CLOSERS[bracket] for bracket in reversed(open))
