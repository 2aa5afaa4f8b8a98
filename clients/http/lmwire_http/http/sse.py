"""Server-sent events as OpenAI's APIs write them, and the names that their replies have."""

import secrets
from collections.abc import Callable
from typing import Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode

DONE: Final = b"data: [DONE]\n\n"
"""The last event of a stream."""


def data(value: object) -> bytes:
    """An event without a name."""
    return b"data: " + _encode(value) + b"\n\n"


class TextFrames:
    """Events that differ in a text alone, of which a stream has one a token: the rest of them is written once.

    Args:
        value: The event's value, given the text, which must be the last string in it.
    """

    def __init__(self, value: Callable[[str], object]) -> None:
        self._before, _, self._after = data(value("")).rpartition(_encode(""))

    def data(self, text: str) -> bytes:
        """The event with this text."""
        return self._before + _encode(text) + self._after


def new_id(kind: str) -> str:
    """A reply's id, as `chatcmpl-…`."""
    return f"{kind}-{secrets.token_hex(16)}"
