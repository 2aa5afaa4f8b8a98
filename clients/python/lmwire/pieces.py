"""What an answer comes in: pieces of its text, and pieces of its tool calls; and a transcript: its segments."""

from collections.abc import Sequence
from typing import ClassVar

from lmwire_protocol import events


class Piece(events.Token, tag="token", kw_only=True, gc=False):
    """A piece of generated text: one `token` event, with the fields `choice`, `token_ids` and `logprobs`."""

    channel: str = "content"  # pyright: ignore[reportIncompatibleVariableOverride] (a later version may have more)
    """`content`, `reasoning`, or what a later version adds; `token` is the text, whatever the channel."""

    @property
    def text(self) -> str:
        """The answer's text that became certain with these tokens; empty when they belong to a thought.

        It may be empty in any case, and never ends inside a character.
        """
        return self.token if self.channel == "content" else ""

    @property
    def reasoning(self) -> str:
        """The same for what the model thinks before it answers."""
        return self.token if self.channel == "reasoning" else ""


class CallPiece(events.ToolCall, tag="tool_call", kw_only=True, gc=False):
    """A piece of a tool call: one `tool_call` event. It has no text, so a loop over text need not know of calls.

    The last piece of a call has `complete`. Where that is False the call is void: its text follows as pieces.
    """

    text: ClassVar[str] = ""
    reasoning: ClassVar[str] = ""
    token_ids: ClassVar[Sequence[int]] = ()
    logprobs: ClassVar[None] = None
    call: ClassVar[bool] = False
    channel: ClassVar[str] = "content"
