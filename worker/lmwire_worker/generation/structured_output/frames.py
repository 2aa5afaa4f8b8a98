"""What stands around thoughts, content and calls in families whose answers are made of messages."""

from dataclasses import dataclass
from typing import Final

from ...output_parsing import CONTENT, Syntax
from .parameters import unsupported


@dataclass(frozen=True, slots=True)
class Frame:
    """One family's way. All fields are fixed text."""

    content: str = ""
    """Before the content."""
    behind_thought: str = ""
    """Between a thought and what follows it."""
    said: tuple[str, str] | None = None
    """Around what is said before a call. None: a call stands in the text, with nothing around either."""
    recipient: tuple[str, str] | None = None
    """Around the function's name, before a section of calls. None: there is no such name."""


FRAMES: Final = {
    "harmony": Frame(
        content="<|channel|>final<|message|>",
        behind_thought="<|start|>assistant",
        said=("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
    ),
    "muse_spark": Frame(
        content="to=user<|message|>",
        behind_thought="<|start|>assistant ",
        said=("to=commentary<|message|>", "<|eom|><|start|>assistant "),
        recipient=("to=", "<|message|>"),
    ),
    "kimi_k3": Frame(
        content="<|open|>response<|sep|>",
        said=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    ),
}
"""By the names of their formats of tool calls."""


def frame_of(syntax: Syntax) -> Frame:
    """The frame of a model.

    Raises:
        RequestError: unsupported: its answers are messages of a kind that is not known here.
    """
    family = syntax.tools.name if syntax.tools is not None else ""
    if syntax.initial == CONTENT:
        return FRAMES[family] if family == "kimi_k3" else Frame()
    if family not in FRAMES:
        raise unsupported("format", "answers of this model, which are messages, cannot be held to anything")
    return FRAMES[family]
