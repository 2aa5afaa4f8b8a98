"""Deltas of an answer: its text and its tool calls, as they are generated."""

from collections.abc import Sequence
from typing import ClassVar

from lmwire_protocol import events


class TokenDelta(events.Token, tag="token", kw_only=True, gc=False):
    """New tokens of an answer and their text: one `token` event, with its fields `choice`, `token_ids` and `logprobs`.

    `token` has the text, whatever its channel.
    """

    channel: str = "content"  # pyright: ignore[reportIncompatibleVariableOverride] (a later version may have more)
    """`content`, `reasoning`, or a channel that a later version adds."""

    @property
    def text(self) -> str:
        """Return the answer's new text, which is empty for reasoning.

        It ends at the end of a character, so a delta whose tokens end within one may have no text.
        """
        return self.token if self.channel == "content" else ""

    @property
    def reasoning(self) -> str:
        """Return the new text of the reasoning, which is empty for the answer itself."""
        return self.token if self.channel == "reasoning" else ""


class ToolCallDelta(events.ToolCall, tag="tool_call", kw_only=True, gc=False):
    """A part of a tool call: one `tool_call` event. It has no text, so that a loop over text can ignore calls.

    `complete` is set in the last delta of a call. If it is False, the call is void, and its text follows in token
    deltas.
    """

    text: ClassVar[str] = ""
    reasoning: ClassVar[str] = ""
    token_ids: ClassVar[Sequence[int]] = ()
    logprobs: ClassVar[None] = None
    prompt_logprobs: ClassVar[None] = None
    call: ClassVar[bool] = False
    channel: ClassVar[str] = "content"
