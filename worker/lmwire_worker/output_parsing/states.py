"""What a model's syntax is made of: states, and the markers that lead from one to the next."""

from collections.abc import Mapping
from typing import Final, Literal

from lmwire_protocol.events import Channel

from ..text_stream.string_matcher import Strings

CONTENT: Final[Channel] = "content"
REASONING: Final[Channel] = "reasoning"
CALL: Final = "call"
THOUGHT_CALL: Final = "call in a thought"
BARE_CALL: Final = "bare call"
INTERRUPTED: Final = "interrupted"
"""The content behind a call that broke into a thought; there the thought can still be closed."""
HEADER: Final = "header"
"""Before a message, in families whose answers consist of messages."""


class State:
    """What the text is up to the next marker.

    Args:
        edges: Markers, and the names of the states that they lead to.
        channel: Whose text it is; for a call, whose text it is when it turns out to be none.
        kind: Text to show; a message's header, which is markup with whatever stands in it; or a section of calls.
    """

    def __init__(
        self,
        edges: Mapping[str, str],
        channel: Channel = "content",
        kind: Literal["text", "header", "call"] = "text",
    ) -> None:
        self.edges = edges
        self.channel: Channel = channel
        self.kind = kind
        self.markers = Strings(edges)
