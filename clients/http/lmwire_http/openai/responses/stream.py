"""Events of a streamed response, and the builder of its output: from deltas to items, and to the events about them."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from lmwire import TokenDelta, ToolCallDelta

from ...http.sse import NamedEventEncoder
from ...inference.answers import ArgumentsBuffer, TokenLogprob, content_logprobs
from ...inference.call_ids import OPENAI_PREFIX, client_call_id
from .items import (
    Call,
    CustomToolCall,
    FunctionCall,
    Message,
    OutputItem,
    OutputText,
    Reasoning,
    ReasoningText,
    Status,
    item_id,
)
from .response import Response
from .tools import ToolSet, input_of

_Kind: TypeAlias = type[Message] | type[Reasoning]


class Event(Struct, tag_field="type", kw_only=True, gc=False):
    """Fields of all events."""

    sequence_number: int = 0
    """Position in the stream, from 0."""


class ResponseEvent(Event):
    """Fields of the events about the whole response."""

    response: Response


class ItemEvent(Event):
    """Fields of the events about an item of the output."""

    output_index: int
    item: OutputItem


class ContentEvent(Event, kw_only=True):
    """Fields of the events about the content of an item."""

    item_id: str
    output_index: int
    content_index: int = 0


class CallEvent(Event):
    """Fields of the events about a call."""

    item_id: str
    output_index: int


class ResponseCreated(ResponseEvent, tag="response.created"):
    """The new response, without output."""


class ResponseInProgress(ResponseEvent, tag="response.in_progress"):
    """The new response, in progress."""


class ResponseCompleted(ResponseEvent, tag="response.completed"):
    """The whole response."""


class ResponseIncomplete(ResponseEvent, tag="response.incomplete"):
    """The response, whose answer reached a limit."""


class ResponseFailed(ResponseEvent, tag="response.failed"):
    """The response with its error and the output so far."""


class ItemAdded(ItemEvent, tag="response.output_item.added"):
    """A new item of the output, without content."""


class ItemDone(ItemEvent, tag="response.output_item.done"):
    """The whole item."""


class PartAdded(ContentEvent, tag="response.content_part.added", kw_only=True):
    """A new part of an item, without content."""

    part: OutputText | ReasoningText


class PartDone(ContentEvent, tag="response.content_part.done", kw_only=True):
    """The whole part."""

    part: OutputText | ReasoningText


class TextDelta(ContentEvent, tag="response.output_text.delta", kw_only=True):
    """More text."""

    delta: str
    logprobs: list[TokenLogprob]


class TextDone(ContentEvent, tag="response.output_text.done", kw_only=True):
    """The whole text."""

    text: str
    logprobs: list[TokenLogprob]


class ReasoningDelta(ContentEvent, tag="response.reasoning_text.delta", kw_only=True):
    """More reasoning."""

    delta: str


class ReasoningDone(ContentEvent, tag="response.reasoning_text.done", kw_only=True):
    """The whole reasoning."""

    text: str


class ArgumentsDelta(CallEvent, tag="response.function_call_arguments.delta"):
    """More arguments of a call."""

    delta: str


class ArgumentsDone(CallEvent, tag="response.function_call_arguments.done"):
    """The whole arguments."""

    name: str
    arguments: str


class InputDelta(CallEvent, tag="response.custom_tool_call_input.delta"):
    """More input of a custom tool."""

    delta: str


class InputDone(CallEvent, tag="response.custom_tool_call_input.done"):
    """The whole input."""

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


_encode: Final = NamedEventEncoder(AnyEvent).encode


class EventEncoder:
    """Encoder of the events of one response. It numbers them, and begins with those that every stream begins with.

    Args:
        response: The response in progress.
    """

    def __init__(self, response: Response) -> None:
        self._response = response
        self._next_number = 0

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return the encoded events. The first ones follow those that begin the stream."""
        first = () if self._next_number else (ResponseCreated(response=self._response), self._in_progress())
        return b"".join(map(self._encode_next, (*first, *events)))

    def encode_waiting(self) -> bytes:
        """Return an event without news: the response is still in progress."""
        return self.encode([]) or self.encode([self._in_progress()])

    def _in_progress(self) -> Event:
        return ResponseInProgress(response=self._response)

    def _encode_next(self, event: Event) -> bytes:
        event.sequence_number = self._next_number
        self._next_number += 1
        return _encode(event)


def call_item(deltas: Sequence[ToolCallDelta], tools: ToolSet, status: Status) -> Call:
    """Return the item of a call.

    Args:
        deltas: All deltas of the call.
        tools: The tools that the model can call.
        status: `completed`, or `incomplete` if the call was cut off.
    """
    buffer = ArgumentsBuffer()
    arguments = "".join(buffer.next_delta(delta.arguments, delta.complete) for delta in deltas)
    tool = tools.called(deltas[0].name or "")
    call_id = client_call_id(deltas[0].call_id, OPENAI_PREFIX)
    if not tool.is_custom:
        id = item_id("fc")
        return FunctionCall(
            id=id, call_id=call_id, name=tool.name, namespace=tool.namespace, arguments=arguments, status=status
        )
    # A tool cannot take the unfinished JSON text of a call that was cut off for a whole input.
    input = input_of(arguments) if status == "completed" else arguments
    return CustomToolCall(
        id=item_id("ctc"), call_id=call_id, name=tool.name, namespace=tool.namespace, input=input, status=status
    )


def call_events(item: Call, index: int) -> Iterator[Event]:
    """Yield the events about a call, which are sent together.

    Args:
        item: The item of the call.
        index: Its place in the output.
    """
    id = item.id or ""
    match item:
        case FunctionCall(name=name, arguments=arguments):
            yield ItemAdded(output_index=index, item=msgspec.structs.replace(item, arguments="", status="in_progress"))
            yield ArgumentsDelta(item_id=id, output_index=index, delta=arguments)
            yield ArgumentsDone(item_id=id, output_index=index, name=name, arguments=arguments)
        case CustomToolCall(input=input):
            yield ItemAdded(output_index=index, item=msgspec.structs.replace(item, input="", status="in_progress"))
            yield InputDelta(item_id=id, output_index=index, delta=input)
            yield InputDone(item_id=id, output_index=index, input=input)
    yield ItemDone(output_index=index, item=item)


class OutputBuilder:
    """The output of an answer.

    A call is held back until it is complete, since an added item cannot be withdrawn. A call that was cut off becomes
    an incomplete item, whose arguments are not valid JSON. The text of an invalid call becomes text. White space
    between items is dropped.

    Args:
        tools: The tools that the model can call.
    """

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools
        self.items: list[OutputItem] = []
        """The finished items."""
        self._open_item: _OpenItem | None = None
        self._whitespace: list[TokenDelta] = []
        """White space that may be the start of a message."""
        self._call_deltas: list[ToolCallDelta] = []
        self._invalid_call: list[TokenDelta] = []
        """Text of a call that may be invalid. The next delta decides."""

    def add(self, deltas: Sequence[TokenDelta | ToolCallDelta]) -> Iterator[Event]:
        """Yield the events for these deltas. Adjacent texts share one event."""
        same_channel: list[TokenDelta] = []
        for delta in deltas:
            if isinstance(delta, TokenDelta) and delta.call:
                yield from self._add_text(same_channel)
                self._invalid_call.append(delta)
                continue
            if self._invalid_call:
                yield from self._add_invalid_call()
            if isinstance(delta, ToolCallDelta):
                yield from self._add_text(same_channel)
                yield from self._add_call(delta)
            else:
                if same_channel and same_channel[-1].channel != delta.channel:
                    yield from self._add_text(same_channel)
                same_channel.append(delta)
        yield from self._add_text(same_channel)

    def end(self, status: Status = "completed") -> Iterator[Event]:
        """Yield the events that end the output.

        Args:
            status: The status of the unfinished item.
        """
        if self._invalid_call and status == "completed":
            yield from self._add_invalid_call()
        elif self._call_deltas:
            yield from self._close_item("completed")
            yield from self._finish_call(status)
        yield from self._close_item(status)

    def _close_item(self, status: Status = "completed") -> Iterator[Event]:
        """Yield the events that end the open item."""
        self._whitespace = []
        if self._open_item:
            yield from self._open_item.close(status)
            self.items.append(self._open_item.item)
            self._open_item = None

    def _add_text(self, same_channel: list[TokenDelta]) -> Iterator[Event]:
        if not same_channel:
            return
        deltas = self._whitespace + same_channel if same_channel[0].channel == "content" else [*same_channel]
        same_channel.clear()
        text = "".join(delta.token for delta in deltas)
        kind = Reasoning if deltas[0].channel == "reasoning" else Message
        if self._open_item and self._open_item.kind is kind:
            yield from self._open_item.more(text, deltas)
        elif kind is Message and not text.strip():
            self._whitespace = deltas
        else:
            yield from self._close_item()
            self._open_item = _OpenItem(kind, len(self.items))
            yield from self._open_item.begin()
            yield from self._open_item.more(text, deltas)

    def _add_call(self, delta: ToolCallDelta) -> Iterator[Event]:
        self._call_deltas.append(delta)
        if delta.complete:
            yield from self._close_item()
            yield from self._finish_call("completed")

    def _add_invalid_call(self) -> Iterator[Event]:
        """Yield the events for the text of an invalid call."""
        self._call_deltas, invalid, self._invalid_call = [], self._invalid_call, []
        for delta in invalid:
            yield from self._add_text([delta])

    def _finish_call(self, status: Status) -> Iterator[Event]:
        call, self._call_deltas, self._invalid_call = self._call_deltas, [], []
        item = call_item(call, self._tools, status)
        yield from call_events(item, len(self.items))
        self.items.append(item)


class _OpenItem:
    """A message or reasoning that still grows."""

    def __init__(self, kind: _Kind, index: int) -> None:
        self.kind, self._index = kind, index
        self._id = item_id("msg" if kind is Message else "rs")
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self.item: OutputItem = self._item([], "in_progress")
        """The item as in the last event about it."""

    def begin(self) -> Iterator[Event]:
        yield ItemAdded(output_index=self._index, item=self.item)
        yield PartAdded(item_id=self._id, output_index=self._index, part=self._part(""))

    def more(self, text: str, deltas: Sequence[TokenDelta]) -> Iterator[Event]:
        self._texts.append(text)
        if self.kind is Reasoning:
            if text:
                yield ReasoningDelta(item_id=self._id, output_index=self._index, delta=text)
            return
        logprobs = [token for delta in deltas for token in content_logprobs(delta)]
        self._logprobs += logprobs
        if text or logprobs:
            yield TextDelta(item_id=self._id, output_index=self._index, delta=text, logprobs=logprobs)

    def close(self, status: Status) -> Iterator[Event]:
        text = "".join(self._texts)
        part = self._part(text)
        if self.kind is Message:
            yield TextDone(item_id=self._id, output_index=self._index, text=text, logprobs=self._logprobs)
        else:
            yield ReasoningDone(item_id=self._id, output_index=self._index, text=text)
        yield PartDone(item_id=self._id, output_index=self._index, part=part)
        self.item = self._item([part], status)
        yield ItemDone(output_index=self._index, item=self.item)

    def _part(self, text: str) -> OutputText | ReasoningText:
        if self.kind is Message:
            return OutputText(text=text, logprobs=self._logprobs)
        return ReasoningText(text=text)

    def _item(self, parts: list[OutputText | ReasoningText], status: Status) -> OutputItem:
        if self.kind is Message:
            texts = [part for part in parts if isinstance(part, OutputText)]
            return Message(id=self._id, role="assistant", content=[*texts], status=status)
        reasoning = [part for part in parts if isinstance(part, ReasoningText)]
        return Reasoning(id=self._id, content=reasoning, status=status)
