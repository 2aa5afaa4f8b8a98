"""How deltas of an answer become the items of a response's output, and the events that tell of them."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lmwire import CallPiece, Piece

from ...inference.partial_tool_calls import ArgumentsBuffer
from ..logprobs import TokenLogprob, content_logprobs
from .items import FunctionCall, Message, OutputItem, OutputText, Reasoning, ReasoningText, Status, item_id
from .stream_events import (
    ArgumentsDelta,
    ArgumentsDone,
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

_Kind: TypeAlias = type[Message] | type[Reasoning]


class OutputBuilder:
    """What has come of an answer.

    A call is held back until it ends, since an item that was added cannot be taken back. One that is cut off with the
    answer is an incomplete item, whose arguments are no JSON. One that cannot be read is text, as the worker sends it.
    White space between items is no item.
    """

    def __init__(self) -> None:
        self.items: list[OutputItem] = []
        """The whole ones."""
        self._open_item: _OpenItem | None = None
        self._whitespace: list[Piece] = []
        """White space that may be the beginning of a message."""
        self._call_deltas: list[CallPiece] = []
        self._invalid_call: list[Piece] = []
        """The text of a call that is none; which kind of one, what follows it tells."""

    def add(self, deltas: Sequence[Piece | CallPiece]) -> Iterator[Event]:
        """The events that these deltas make, texts that follow each other in one."""
        alike: list[Piece] = []
        for delta in deltas:
            if isinstance(delta, Piece) and delta.call:
                yield from self._add_text(alike)
                self._invalid_call.append(delta)
                continue
            if self._invalid_call:
                yield from self._add_invalid_call()
            if isinstance(delta, CallPiece):
                yield from self._add_text(alike)
                yield from self._add_call(delta)
            else:
                if alike and alike[-1].channel != delta.channel:
                    yield from self._add_text(alike)
                alike.append(delta)
        yield from self._add_text(alike)

    def end(self, status: Status = "completed") -> Iterator[Event]:
        """Those of the output's end. The status is that of what is not whole yet."""
        if self._invalid_call and status == "completed":
            yield from self._add_invalid_call()
        elif self._call_deltas:
            yield from self._close_item("completed")
            yield from self._finish_call(status)
        yield from self._close_item(status)

    def _close_item(self, status: Status = "completed") -> Iterator[Event]:
        """Those of the end of the item at hand."""
        self._whitespace = []
        if self._open_item:
            yield from self._open_item.close(status)
            self.items.append(self._open_item.item)
            self._open_item = None

    def _add_text(self, alike: list[Piece]) -> Iterator[Event]:
        if not alike:
            return
        deltas = self._whitespace + alike if alike[0].channel == "content" else [*alike]
        alike.clear()
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

    def _add_call(self, delta: CallPiece) -> Iterator[Event]:
        self._call_deltas.append(delta)
        if delta.complete:
            yield from self._close_item()
            yield from self._finish_call("completed")

    def _add_invalid_call(self) -> Iterator[Event]:
        """Those of a call that cannot be read: its text."""
        self._call_deltas, void, self._invalid_call = [], self._invalid_call, []
        for delta in void:
            yield from self._add_text([delta])

    def _finish_call(self, status: Status) -> Iterator[Event]:
        call, self._call_deltas, self._invalid_call = self._call_deltas, [], []
        passed = ArgumentsBuffer()
        arguments = "".join(passed.next_delta(delta.arguments, delta.complete) for delta in call)
        id, index = item_id("fc"), len(self.items)
        name, call_id = call[0].name or "", call[0].call_id or ""
        begun = FunctionCall(id=id, call_id=call_id, name=name, arguments="", status="in_progress")
        whole = FunctionCall(id=id, call_id=call_id, name=name, arguments=arguments, status=status)
        yield ItemAdded(output_index=index, item=begun)
        yield ArgumentsDelta(item_id=id, output_index=index, delta=arguments)
        yield ArgumentsDone(item_id=id, output_index=index, name=name, arguments=arguments)
        yield ItemDone(output_index=index, item=whole)
        self.items.append(whole)


class _OpenItem:
    """A message, or a thought, that goes on."""

    def __init__(self, kind: _Kind, index: int) -> None:
        self.kind, self._index = kind, index
        self._id = item_id("msg" if kind is Message else "rs")
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self.item: OutputItem = self._item([], "in_progress")
        """As it was last told of."""

    def begin(self) -> Iterator[Event]:
        yield ItemAdded(output_index=self._index, item=self.item)
        yield PartAdded(item_id=self._id, output_index=self._index, part=self._part(""))

    def more(self, text: str, deltas: Sequence[Piece]) -> Iterator[Event]:
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
            said = [part for part in parts if isinstance(part, OutputText)]
            return Message(id=self._id, role="assistant", content=[*said], status=status)
        thought = [part for part in parts if isinstance(part, ReasoningText)]
        return Reasoning(id=self._id, content=thought, status=status)
