"""A message of the model's: what it is made of, why it ended, what it took."""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from lmwire_protocol import events

UNSIGNED: Final = "unsigned"
"""The signature of every thought. There is nothing to verify, and many clients send back no thought without one."""


class TextBlock(Struct, tag_field="type", tag="text"):
    """Text."""

    text: str
    citations: None = None


class ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    """What the model thought."""

    thinking: str
    signature: str = ""


class ToolUseBlock(Struct, tag_field="type", tag="tool_use"):
    """A call of a tool."""

    id: str
    name: str
    input: Any
    """An object."""


ContentBlock: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock
StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "model_context_window_exceeded"
]


class OutputDetails(Struct):
    """What `output_tokens` are made of."""

    thinking_tokens: int


class Usage(Struct, kw_only=True):
    """Tokens. The prompt's are the sum of the three of input."""

    input_tokens: int
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = None
    output_tokens: int
    output_tokens_details: OutputDetails | None = None


class Message(Struct, kw_only=True, tag_field="type", tag="message"):
    """The answer."""

    id: str
    model: str
    role: Literal["assistant"] = "assistant"
    content: list[ContentBlock] = []
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage: Usage


def to_usage(result: events.ResultDone) -> Usage:
    """What it took."""
    used = result.usage
    return Usage(
        input_tokens=used.prompt_tokens - used.cached_tokens,
        cache_read_input_tokens=used.cached_tokens,
        output_tokens=used.completion_tokens,
        output_tokens_details=OutputDetails(used.reasoning_tokens),
    )


def is_incomplete(result: events.ResultDone) -> bool:
    """Return whether the answer was cut off before the model ended its turn."""
    return result.finish_reason not in {"stop", "tool_calls"}


def stop_reason(result: events.ResultDone, max_tokens: int) -> StopReason:
    """Why it ended."""
    match result.finish_reason:
        case "stop":
            return "stop_sequence" if result.stop is not None else "end_turn"
        case "length":
            full = result.usage.completion_tokens < max_tokens
            return "model_context_window_exceeded" if full else "max_tokens"
        case "capacity":
            return "model_context_window_exceeded"
        case "tool_calls":
            return "tool_use"
        case "timeout":
            return "pause_turn"
        case _:
            return "end_turn"


def raw_input(arguments: str) -> msgspec.Raw:
    """The arguments of a whole call, which are an object's JSON already."""
    return msgspec.Raw(arguments.encode())
