"""The message object of a response: content, stop reason and usage."""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from lmwire_protocol import events

UNSIGNED: Final = "unsigned"
"""Signature of all reasoning. There is nothing to verify, but many clients do not send back reasoning without one."""


class TextBlock(Struct, tag_field="type", tag="text"):
    """Text. It has no field `citations`: some clients reject the value null."""

    text: str


class ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    """The model's reasoning."""

    thinking: str
    signature: str = ""


class ToolUseBlock(Struct, tag_field="type", tag="tool_use"):
    """A tool call."""

    id: str
    name: str
    input: Any
    """A JSON object."""


ContentBlock: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock
StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "model_context_window_exceeded"
]


class OutputDetails(Struct):
    """Details of `output_tokens`."""

    thinking_tokens: int


class Usage(Struct, kw_only=True):
    """Token counts. The three counts of input add up to the prompt's tokens."""

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
    """Return the token counts of a result."""
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
    """Return why the answer ended.

    Args:
        result: The worker's result.
        max_tokens: The limit in the request.
    """
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
    """Return the arguments of a complete call, which are the JSON text of an object."""
    return msgspec.Raw(arguments.encode())
