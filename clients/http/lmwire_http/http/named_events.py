"""Server-sent events that carry the name of their type, as Anthropic's messages and OpenAI's responses have them."""

from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

_encode: Final = msgspec.json.Encoder().encode


class NamedEvents:
    """Writes events.

    Args:
        kinds: A union of Structs with tags, which are the names.
    """

    def __init__(self, kinds: Any) -> None:
        self._heads = {
            kind: b"event: %b\ndata: " % str(kind.__struct_config__.tag).encode() for kind in get_args(kinds)
        }

    def frame(self, event: Struct) -> bytes:
        """An event as it is sent."""
        return b"%b%b\n\n" % (self._heads[type(event)], _encode(event))
