"""Server-sent events: with names, without, and those of a stream that has nothing else to send.

See https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

_encode: Final = msgspec.json.Encoder().encode

DONE: Final = b"data: [DONE]\n\n"
"""The last event of a stream in OpenAI's API."""


def comment() -> bytes:
    """Return a comment, for streams whose API has no event that says nothing."""
    return b": keep-alive\n\n"


def data_event(value: object) -> bytes:
    """Return an event without a name."""
    return b"data: " + _encode(value) + b"\n\n"


_PLACE: Final = "\x00the text\x00"
"""Stands for the text in a template. No name has it."""


class TextEventTemplate:
    """Encoder of events that differ only in one text, such as those for tokens. The rest is encoded once.

    Args:
        value: Returns the event's value for a text, which may be at several places of it.
    """

    def __init__(self, value: Callable[[str], object]) -> None:
        self._parts = data_event(value(_PLACE)).split(_encode(_PLACE))

    def event(self, text: str) -> bytes:
        """Return the event with this text."""
        return _encode(text).join(self._parts)


class NamedEventEncoder:
    """Encoder of events with names, as in Anthropic's messages and OpenAI's responses.

    Args:
        kinds: A union of Structs. Their tags are the names.
    """

    def __init__(self, kinds: Any) -> None:
        self._heads = {
            kind: b"event: %b\ndata: " % str(kind.__struct_config__.tag).encode() for kind in get_args(kinds)
        }

    def encode(self, event: Struct) -> bytes:
        """Return the encoded event."""
        return b"%b%b\n\n" % (self._heads[type(event)], _encode(event))


class WaitingEvent:
    """The event that a stream sends after each interval of silence, so that its client does not give it up.

    Agents end a stream that is silent for some time. Comments do not count for them, so each API has an event of its
    own that has no content.

    Args:
        encode: Returns the encoded event as it is now; never empty.
    """

    def __init__(self, encode: Callable[[], bytes]) -> None:
        self.encode = encode
        self._due = asyncio.Event()

    def send_now(self) -> None:
        """Send the event without waiting for the interval, since it has something new after all."""
        self._due.set()

    def withdraw(self) -> None:
        """Take back `send_now`, since what was new has been sent."""
        self._due.clear()

    async def until_due(self, silence_s: float) -> bool:
        """Wait for `send_now`, and return whether it was called.

        Args:
            silence_s: Longest wait, in seconds.
        """
        try:
            async with asyncio.timeout(silence_s):
                await self._due.wait()
        except TimeoutError:
            return False
        self._due.clear()
        return True
