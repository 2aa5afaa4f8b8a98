"""The events of a streamed message, and how pieces of an answer become those of its content."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lmwire import CallPiece, Piece

from ..http.sse import NamedEventEncoder
from ..inference.partial_tool_calls import whole_members
from .response_schema import (
    UNSIGNED,
    ContentBlock,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    input_of,
)


class TextDelta(Struct, tag_field="type", tag="text_delta", gc=False):
    """More text."""

    text: str


class ThinkingDelta(Struct, tag_field="type", tag="thinking_delta", gc=False):
    """More of a thought."""

    thinking: str


class SignatureDelta(Struct, tag_field="type", tag="signature_delta", gc=False):
    """The end of a thought."""

    signature: str


class InputJsonDelta(Struct, tag_field="type", tag="input_json_delta", gc=False):
    """More of a call's input."""

    partial_json: str


class Event(Struct, tag_field="type"):
    """What all events share."""


class MessageStart(Event, tag="message_start"):
    """The message, still without content."""

    message: Message


class ContentBlockStart(Event, tag="content_block_start"):
    """A new block, still empty."""

    index: int
    content_block: ContentBlock


class ContentBlockDelta(Event, tag="content_block_delta"):
    """More of the block."""

    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class ContentBlockStop(Event, tag="content_block_stop"):
    """The block is whole."""

    index: int


class StopDelta(Struct):
    """How the message ended."""

    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Event, tag="message_delta"):
    """The message's end."""

    delta: StopDelta
    usage: Usage


class MessageStop(Event, tag="message_stop"):
    """The stream's end."""


AnyEvent: TypeAlias = (
    MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageDelta | MessageStop
)


frame: Final = NamedEventEncoder(AnyEvent).encode
"""Writes an event."""


class Blocks:
    """Makes the events of a content.

    A call is held back until it ends, since a block that has begun cannot be taken back. One that is cut off with the
    answer is a block with those members of its input that are whole. One that cannot be read is text, as the worker
    sends it. White space between blocks is no block.

    Args:
        shows_thinking: Whether thoughts are told. If not, they are empty blocks.
    """

    def __init__(self, *, shows_thinking: bool) -> None:
        self._shows_thinking = shows_thinking
        self._index = -1
        self._open: type[ContentBlock] | None = None
        self._call: list[CallPiece] = []
        self._void: list[Piece] = []
        """The text of a call that is none; which kind of one, what follows it tells."""
        self._blank = ""
        """White space that may be the beginning of a text."""

    def add(self, pieces: Sequence[Piece | CallPiece]) -> Iterator[Event]:
        """The events that these pieces make, texts that follow each other in one."""
        texts: list[str] = []
        kind: type[ContentBlock] = TextBlock
        for piece in pieces:
            if isinstance(piece, Piece) and piece.call:
                yield from self._told(kind, texts)
                self._void.append(piece)
                continue
            if self._void:
                yield from self._void_told()
            if isinstance(piece, CallPiece):
                yield from self._told(kind, texts)
                yield from self._called(piece)
            elif piece.token:
                came = ThinkingBlock if piece.channel == "reasoning" else TextBlock
                if came is not kind:
                    yield from self._told(kind, texts)
                    kind = came
                texts.append(piece.token)
        yield from self._told(kind, texts)

    def end(self, *, cut: bool) -> Iterator[Event]:
        """Those of the content's end.

        Args:
            cut: Whether the answer was cut off.
        """
        if self._void and not cut:
            yield from self._void_told()
        elif self._call:
            yield from self._call_ended()
        yield from self._close()

    def _close(self) -> Iterator[Event]:
        """Those of the end of the block at hand."""
        if self._open is ThinkingBlock:
            yield ContentBlockDelta(self._index, SignatureDelta(UNSIGNED))
        if self._open:
            yield ContentBlockStop(self._index)
        self._open = None
        self._blank = ""

    def _told(self, kind: type[ContentBlock], texts: list[str]) -> Iterator[Event]:
        if not texts:
            return
        text = "".join(texts)
        texts.clear()
        if kind is ThinkingBlock:
            yield from self._thought(text)
            return
        if self._open is not TextBlock:
            text = self._blank + text
            if text.isspace():
                self._blank = text
                return
            yield from self._start(TextBlock(""))
        yield ContentBlockDelta(self._index, TextDelta(text))

    def _thought(self, text: str) -> Iterator[Event]:
        if self._open is not ThinkingBlock:
            yield from self._start(ThinkingBlock(""))
        if self._shows_thinking:
            yield ContentBlockDelta(self._index, ThinkingDelta(text))

    def _called(self, piece: CallPiece) -> Iterator[Event]:
        self._call.append(piece)
        if piece.complete:
            yield from self._call_ended()

    def _void_told(self) -> Iterator[Event]:
        """Those of a call that cannot be read: its text."""
        self._call, void, self._void = [], self._void, []
        for piece in void:
            yield from self._told(ThinkingBlock if piece.channel == "reasoning" else TextBlock, [piece.token])

    def _call_ended(self) -> Iterator[Event]:
        call, self._call, self._void = self._call, [], []
        first, written = call[0], "".join(each.arguments for each in call)
        yield from self._start(ToolUseBlock(first.call_id or "", first.name or "", {}))
        yield ContentBlockDelta(self._index, InputJsonDelta(written if call[-1].complete else whole_members(written)))
        yield from self._close()

    def _start(self, block: ContentBlock) -> Iterator[Event]:
        yield from self._close()
        self._index += 1
        self._open = type(block)
        yield ContentBlockStart(self._index, block)


def content(events: Iterable[Event]) -> list[ContentBlock]:
    """The content that whole events tell of."""
    blocks: list[Any] = []
    for event in events:
        if isinstance(event, ContentBlockStart):
            blocks.append(event.content_block)
        elif isinstance(event, ContentBlockDelta):
            _extend(blocks[-1], event.delta)
    return blocks


def _extend(block: Any, delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta) -> None:
    match delta:
        case TextDelta():
            block.text += delta.text
        case ThinkingDelta():
            block.thinking += delta.thinking
        case SignatureDelta():
            block.signature = delta.signature
        case InputJsonDelta():
            block.input = input_of(delta.partial_json)
