"""How pieces of an answer become the items of a response's output, and the events that tell of them."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lmwire import CallPiece, Piece

from ...inference.partial_tool_calls import Arguments
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
    TextDelta,
    TextDone,
    ThoughtDelta,
    ThoughtDone,
)

_Kind: TypeAlias = type[Message] | type[Reasoning]


class Output:
    """What has come of an answer.

    A call is held back until it ends, since an item that was added cannot be taken back. One that is cut off with the
    answer is an incomplete item, whose arguments are no JSON. One that cannot be read is text, as the worker sends it.
    White space between items is no item.
    """

    def __init__(self) -> None:
        self.items: list[OutputItem] = []
        """The whole ones."""
        self._open: _Open | None = None
        self._blank: list[Piece] = []
        """White space that may be the beginning of a message."""
        self._call: list[CallPiece] = []
        self._void: list[Piece] = []
        """The text of a call that is none; which kind of one, what follows it tells."""

    def add(self, pieces: Sequence[Piece | CallPiece]) -> Iterator[Event]:
        """The events that these pieces make, texts that follow each other in one."""
        alike: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Piece) and piece.call:
                yield from self._tell(alike)
                self._void.append(piece)
                continue
            if self._void:
                yield from self._tell_void()
            if isinstance(piece, CallPiece):
                yield from self._tell(alike)
                yield from self._tell_call(piece)
            else:
                if alike and alike[-1].channel != piece.channel:
                    yield from self._tell(alike)
                alike.append(piece)
        yield from self._tell(alike)

    def end(self, status: Status = "completed") -> Iterator[Event]:
        """Those of the output's end. The status is that of what is not whole yet."""
        if self._void and status == "completed":
            yield from self._tell_void()
        elif self._call:
            yield from self._close("completed")
            yield from self._ended_call(status)
        yield from self._close(status)

    def _close(self, status: Status = "completed") -> Iterator[Event]:
        """Those of the end of the item at hand."""
        self._blank = []
        if self._open:
            yield from self._open.close(status)
            self.items.append(self._open.item)
            self._open = None

    def _tell(self, alike: list[Piece]) -> Iterator[Event]:
        if not alike:
            return
        pieces = self._blank + alike if alike[0].channel == "content" else [*alike]
        alike.clear()
        text = "".join(piece.token for piece in pieces)
        kind = Reasoning if pieces[0].channel == "reasoning" else Message
        if self._open and self._open.kind is kind:
            yield from self._open.more(text, pieces)
        elif kind is Message and not text.strip():
            self._blank = pieces
        else:
            yield from self._close()
            self._open = _Open(kind, len(self.items))
            yield from self._open.begin()
            yield from self._open.more(text, pieces)

    def _tell_call(self, piece: CallPiece) -> Iterator[Event]:
        self._call.append(piece)
        if piece.complete:
            yield from self._close()
            yield from self._ended_call("completed")

    def _tell_void(self) -> Iterator[Event]:
        """Those of a call that cannot be read: its text."""
        self._call, void, self._void = [], self._void, []
        for piece in void:
            yield from self._tell([piece])

    def _ended_call(self, status: Status) -> Iterator[Event]:
        call, self._call, self._void = self._call, [], []
        passed = Arguments()
        arguments = "".join(passed.pass_on(piece.arguments, piece.complete) for piece in call)
        id, index = item_id("fc"), len(self.items)
        name, call_id = call[0].name or "", call[0].call_id or ""
        begun = FunctionCall(id=id, call_id=call_id, name=name, arguments="", status="in_progress")
        whole = FunctionCall(id=id, call_id=call_id, name=name, arguments=arguments, status=status)
        yield ItemAdded(output_index=index, item=begun)
        yield ArgumentsDelta(item_id=id, output_index=index, delta=arguments)
        yield ArgumentsDone(item_id=id, output_index=index, name=name, arguments=arguments)
        yield ItemDone(output_index=index, item=whole)
        self.items.append(whole)


class _Open:
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

    def more(self, text: str, pieces: Sequence[Piece]) -> Iterator[Event]:
        self._texts.append(text)
        if self.kind is Reasoning:
            if text:
                yield ThoughtDelta(item_id=self._id, output_index=self._index, delta=text)
            return
        logprobs = [token for piece in pieces for token in content_logprobs(piece)]
        self._logprobs += logprobs
        if text or logprobs:
            yield TextDelta(item_id=self._id, output_index=self._index, delta=text, logprobs=logprobs)

    def close(self, status: Status) -> Iterator[Event]:
        text = "".join(self._texts)
        part = self._part(text)
        if self.kind is Message:
            yield TextDone(item_id=self._id, output_index=self._index, text=text, logprobs=self._logprobs)
        else:
            yield ThoughtDone(item_id=self._id, output_index=self._index, text=text)
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
