"""The states of a model's output, and the markers that lead from one state to the next."""

from collections.abc import Mapping
from typing import Final, Literal

from lmwire_protocol.events import Channel

from ..text_stream.string_matcher import StringAutomaton

CONTENT: Final[Channel] = "content"
REASONING: Final[Channel] = "reasoning"
CALL: Final = "call"
REASONING_CALL: Final = "call in reasoning"
BARE_CALL: Final = "bare call"
INTERRUPTED: Final = "interrupted"
"""Content after a call that interrupted reasoning. The end marker of reasoning may still come."""
HEADER: Final = "header"
"""The markup before a message, in families whose answers consist of messages."""


class State:
    """The meaning of the text up to the next marker.

    Args:
        transitions: Markers, and the names of the states that they lead to.
        channel: The text's channel. For a call, the channel of its text if it proves invalid.
        kind: Text of the answer, a message's header (markup), or a section of tool calls.
    """

    def __init__(
        self,
        edges: Mapping[str, str],
        channel: Channel = "content",
        kind: Literal["text", "header", "call"] = "text",
    ) -> None:
        self.transitions = edges
        self.channel: Channel = channel
        self.kind = kind
        self.markers = StringAutomaton(edges)
