"""The states of a model's output, and the markers that lead from one state to the next."""

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal

from lmwire_protocol.events import Channel

from ..text_stream.string_matcher import StringAutomaton

CONTENT: Final[Channel] = "content"
REASONING: Final[Channel] = "reasoning"
CALL: Final = "call"
LOST_CALL: Final = "call without its start marker"
REASONING_CALL: Final = "call in reasoning"
REASONING_LOST_CALL: Final = "call in reasoning without its start marker"
QUOTED_CALL: Final = "quoted call in reasoning"
"""Text from a call in reasoning on, which is part of the reasoning if that closes."""
OPENED: Final = "opened reasoning"
"""The start of reasoning whose marker may go on."""
UNCLOSED: Final = "unclosed reasoning"
"""Reasoning that never closes, so that a call in it is one."""
BARE_CALL: Final = "bare call"
INTERRUPTED: Final = "interrupted"
"""Content after a call that interrupted reasoning. The end marker of reasoning may still come."""
HEADER: Final = "header"
"""The markup before a message, in families whose answers consist of messages."""

Kind = Literal["text", "header", "call", "quoted"]


class State:
    """The meaning of the text up to the next marker.

    Args:
        transitions: Markers, and the names of the states that they lead to.
        channel: The text's channel. For a call, the channel of its text if it proves invalid.
        kind: Text of the answer, a message's header (markup), a section of tool calls, or reasoning that may prove to
            be one.
        has_markup: The section of calls includes the markup that led to it.
        other_header: Pattern of a header's rest in a section that is a message to another recipient than a function. It
            has the group `recipient`. None in families whose sections are always calls.
        late_ends: The markers that are text after other content.
        otherwise: The name of the state in which other text than a marker belongs. None if it belongs here.
    """

    def __init__(
        self,
        edges: Mapping[str, str],
        channel: Channel = "content",
        kind: Kind = "text",
        *,
        has_markup: bool = False,
        other_header: re.Pattern[str] | None = None,
        late_ends: Collection[str] = (),
        otherwise: str | None = None,
    ) -> None:
        self.transitions = edges
        self.channel: Channel = channel
        self.kind = kind
        self.has_markup = has_markup
        self.other_header = other_header
        self.late_ends = late_ends
        self.otherwise = otherwise
        self.is_plain = kind == "text" and otherwise is None
        """True if all text up to the next marker is of the channel."""
        self.markers = StringAutomaton(edges)
