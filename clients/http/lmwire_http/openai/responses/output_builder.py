"""Builder of a response's output: from deltas to items, and to the events about them."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lmwire import TokenDelta, ToolCallDelta

from ...inference.answers import TokenLogprob, content_logprobs
from .call_items import call_events, call_item
from .items import Message, OutputItem, OutputText, Reasoning, ReasoningText, Status, item_id
from .stream_events import (
    Event,
    ItemAdded,
    ItemDone,
    PartAdded,
    PartDone,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
    TextDone,
)
from .tool_set import ToolSet

_Kind: TypeAlias = type[Message] | type[Reasoning]


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
