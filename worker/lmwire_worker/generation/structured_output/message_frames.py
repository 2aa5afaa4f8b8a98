"""The fixed text around reasoning, content and tool calls, in families whose answers consist of messages."""

from dataclasses import dataclass
from typing import Final

from ...output_parsing import CONTENT, Syntax
from .tool_parameters import unsupported


@dataclass(frozen=True, slots=True)
class MessageFrame:
    """The fixed text of one family."""

    before_content: str = ""
    """Text before the content."""
    after_reasoning: str = ""
    """Text between reasoning and the rest of the answer."""
    text_before_call: tuple[str, str] | None = None
    """Text before and after the content that precedes a call; None if calls are part of the content."""
    recipient: tuple[str, str] | None = None
    """Text before and after the function's name, which precedes a section of calls; None without such a name."""
    writes_empty_content: bool = False
    """The text around content may precede a call, without content."""
    starts_call: bool = False
    """The prompt has the start marker of a first call."""
    is_spaced: bool = False
    """White space may stand before reasoning, content and calls."""


FRAMES: Final = {
    "harmony": MessageFrame(
        before_content="<|channel|>final<|message|>",
        after_reasoning="<|start|>assistant",
        text_before_call=("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
    ),
    "muse_spark": MessageFrame(
        before_content="to=user<|message|>",
        after_reasoning="<|start|>assistant ",
        text_before_call=("to=commentary<|message|>", "<|eom|><|start|>assistant "),
        recipient=("to=", "<|message|>"),
    ),
    "solar_open": MessageFrame(
        before_content="<|content|>",
        after_reasoning="<|begin|>assistant",
        text_before_call=("<|content|>", "<|end|><|begin|>assistant"),
    ),
    "functionary_v3_2": MessageFrame(before_content="all\n", starts_call=True),
    "kimi_k3": MessageFrame(
        before_content="<|open|>response<|sep|>",
        text_before_call=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        writes_empty_content=True,
    ),
}
"""The frames by the names of the families' formats of tool calls."""


def find_frame(syntax: Syntax) -> MessageFrame:
    """Return the frame of a model.

    Raises:
        RequestError: unsupported: the model's answers consist of messages of an unknown kind.
    """
    family = syntax.tools.name if syntax.tools is not None else ""
    if syntax.initial == CONTENT:
        return FRAMES.get(family, MessageFrame(is_spaced=True))
    if family not in FRAMES:
        raise unsupported("format", "answers of this model, which are messages, cannot be held to anything")
    return FRAMES[family]
