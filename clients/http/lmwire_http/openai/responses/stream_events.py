"""Events of a streamed response."""

from typing import TypeAlias

from msgspec import Struct

from ...inference.answers import TokenLogprob
from .items import OutputItem, OutputText, ReasoningText
from .response_schema import Response


class Event(Struct, tag_field="type", kw_only=True, gc=False):
    """Fields of all events."""

    sequence_number: int = 0
    """Position in the stream, from 0."""


class ResponseCreated(Event, tag="response.created"):
    """The new response, without output."""

    response: Response


class ResponseInProgress(Event, tag="response.in_progress"):
    """The new response, in progress."""

    response: Response


class ResponseCompleted(Event, tag="response.completed"):
    """The whole response."""

    response: Response


class ResponseIncomplete(Event, tag="response.incomplete"):
    """The response, whose answer reached a limit."""

    response: Response


class ResponseFailed(Event, tag="response.failed"):
    """The response with its error and the output so far."""

    response: Response


class ItemAdded(Event, tag="response.output_item.added"):
    """A new item of the output, without content."""

    output_index: int
    item: OutputItem


class ItemDone(Event, tag="response.output_item.done"):
    """The whole item."""

    output_index: int
    item: OutputItem


class PartAdded(Event, tag="response.content_part.added", kw_only=True):
    """A new part of an item, without content."""

    item_id: str
    output_index: int
    content_index: int = 0
    part: OutputText | ReasoningText


class PartDone(Event, tag="response.content_part.done", kw_only=True):
    """The whole part."""

    item_id: str
    output_index: int
    content_index: int = 0
    part: OutputText | ReasoningText


class TextDelta(Event, tag="response.output_text.delta", kw_only=True):
    """More text."""

    item_id: str
    output_index: int
    content_index: int = 0
    delta: str
    logprobs: list[TokenLogprob]


class TextDone(Event, tag="response.output_text.done", kw_only=True):
    """The whole text."""

    item_id: str
    output_index: int
    content_index: int = 0
    text: str
    logprobs: list[TokenLogprob]


class ReasoningDelta(Event, tag="response.reasoning_text.delta", kw_only=True):
    """More reasoning."""

    item_id: str
    output_index: int
    content_index: int = 0
    delta: str


class ReasoningDone(Event, tag="response.reasoning_text.done", kw_only=True):
    """The whole reasoning."""

    item_id: str
    output_index: int
    content_index: int = 0
    text: str


class ArgumentsDelta(Event, tag="response.function_call_arguments.delta"):
    """More arguments of a call."""

    item_id: str
    output_index: int
    delta: str


class ArgumentsDone(Event, tag="response.function_call_arguments.done"):
    """The whole arguments."""

    item_id: str
    output_index: int
    name: str
    arguments: str


class InputDelta(Event, tag="response.custom_tool_call_input.delta"):
    """More input of a custom tool."""

    item_id: str
    output_index: int
    delta: str


class InputDone(Event, tag="response.custom_tool_call_input.done"):
    """The whole input."""

    item_id: str
    output_index: int
    input: str


AnyEvent: TypeAlias = (
    ResponseCreated
    | ResponseInProgress
    | ResponseCompleted
    | ResponseIncomplete
    | ResponseFailed
    | ItemAdded
    | ItemDone
    | PartAdded
    | PartDone
    | TextDelta
    | TextDone
    | ReasoningDelta
    | ReasoningDone
    | ArgumentsDelta
    | ArgumentsDone
    | InputDelta
    | InputDone
)
