"""The events of a streamed message, and how deltas of an answer become those of its content."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lmwire import CallPiece, Piece

from ..http.sse import NamedEventEncoder
from ..inference.partial_tool_calls import complete_members
from .response_schema import (
    UNSIGNED,
    ContentBlock,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    raw_input,
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


encode_event: Final = NamedEventEncoder(AnyEvent).encode
"""Writes an event."""


class ContentBuilder:
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
        self._open_type: type[ContentBlock] | None = None
        self._call_deltas: list[CallPiece] = []
        self._invalid_call: list[Piece] = []
        """The text of a call that is none; which kind of one, what follows it tells."""
        self._whitespace = ""
        """White space that may be the beginning of a text."""

    def add(self, deltas: Sequence[Piece | CallPiece]) -> Iterator[Event]:
        """The events that these deltas make, texts that follow each other in one."""
        texts: list[str] = []
        kind: type[ContentBlock] = TextBlock
        for delta in deltas:
            if isinstance(delta, Piece) and delta.call:
                yield from self._add_text(kind, texts)
                self._invalid_call.append(delta)
                continue
            if self._invalid_call:
                yield from self._add_invalid_call()
            if isinstance(delta, CallPiece):
                yield from self._add_text(kind, texts)
                yield from self._add_call(delta)
            elif delta.token:
                came = ThinkingBlock if delta.channel == "reasoning" else TextBlock
                if came is not kind:
                    yield from self._add_text(kind, texts)
                    kind = came
                texts.append(delta.token)
        yield from self._add_text(kind, texts)

    def end(self, *, cut: bool) -> Iterator[Event]:
        """Those of the content's end.

        Args:
            cut: Whether the answer was cut off.
        """
        if self._invalid_call and not cut:
            yield from self._add_invalid_call()
        elif self._call_deltas:
            yield from self._finish_call()
        yield from self._close_block()

    def _close_block(self) -> Iterator[Event]:
        """Those of the end of the block at hand."""
        if self._open_type is ThinkingBlock:
            yield ContentBlockDelta(self._index, SignatureDelta(UNSIGNED))
        if self._open_type:
            yield ContentBlockStop(self._index)
        self._open_type = None
        self._whitespace = ""

    def _add_text(self, kind: type[ContentBlock], texts: list[str]) -> Iterator[Event]:
        if not texts:
            return
        text = "".join(texts)
        texts.clear()
        if kind is ThinkingBlock:
            yield from self._add_reasoning(text)
            return
        if self._open_type is not TextBlock:
            text = self._whitespace + text
            if text.isspace():
                self._whitespace = text
                return
            yield from self._open_block(TextBlock(""))
        yield ContentBlockDelta(self._index, TextDelta(text))

    def _add_reasoning(self, text: str) -> Iterator[Event]:
        if self._open_type is not ThinkingBlock:
            yield from self._open_block(ThinkingBlock(""))
        if self._shows_thinking:
            yield ContentBlockDelta(self._index, ThinkingDelta(text))

    def _add_call(self, delta: CallPiece) -> Iterator[Event]:
        self._call_deltas.append(delta)
        if delta.complete:
            yield from self._finish_call()

    def _add_invalid_call(self) -> Iterator[Event]:
        """Those of a call that cannot be read: its text."""
        self._call_deltas, void, self._invalid_call = [], self._invalid_call, []
        for delta in void:
            yield from self._add_text(ThinkingBlock if delta.channel == "reasoning" else TextBlock, [delta.token])

    def _finish_call(self) -> Iterator[Event]:
        call, self._call_deltas, self._invalid_call = self._call_deltas, [], []
        first, written = call[0], "".join(each.arguments for each in call)
        yield from self._open_block(ToolUseBlock(first.call_id or "", first.name or "", {}))
        yield ContentBlockDelta(
            self._index, InputJsonDelta(written if call[-1].complete else complete_members(written))
        )
        yield from self._close_block()

    def _open_block(self, block: ContentBlock) -> Iterator[Event]:
        yield from self._close_block()
        self._index += 1
        self._open_type = type(block)
        yield ContentBlockStart(self._index, block)


def collect_content(events: Iterable[Event]) -> list[ContentBlock]:
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
            block.input = raw_input(delta.partial_json)
