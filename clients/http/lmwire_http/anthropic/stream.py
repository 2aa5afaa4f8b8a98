"""Events of a streamed message, and the builder that makes them from deltas."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lmwire import TokenDelta, ToolCallDelta

from ..http.sse import NamedEventEncoder, comment
from ..inference.answers import complete_members
from ..inference.call_ids import ANTHROPIC_PREFIX, client_call_id
from .response import (
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

_COMMENTS_BETWEEN_PINGS: Final = 5


class TextDelta(Struct, tag_field="type", tag="text_delta", gc=False):
    """More text."""

    text: str


class ThinkingDelta(Struct, tag_field="type", tag="thinking_delta", gc=False):
    """More reasoning."""

    thinking: str


class SignatureDelta(Struct, tag_field="type", tag="signature_delta", gc=False):
    """The end of the reasoning."""

    signature: str


class InputJsonDelta(Struct, tag_field="type", tag="input_json_delta", gc=False):
    """More of a call's input."""

    partial_json: str


class Event(Struct, tag_field="type"):
    """Base of all events."""


class Ping(Event, tag="ping"):
    """A sign that the server still works on the message. It may come at any place."""


class MessageStart(Event, tag="message_start"):
    """The message, without content."""

    message: Message


class ContentBlockStart(Event, tag="content_block_start"):
    """A new block, without content."""

    index: int
    content_block: ContentBlock


class ContentBlockDelta(Event, tag="content_block_delta"):
    """More of the block."""

    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class ContentBlockStop(Event, tag="content_block_stop"):
    """The end of the block."""

    index: int


class StopDelta(Struct):
    """The reason of the message's end."""

    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Event, tag="message_delta"):
    """The end of the message."""

    delta: StopDelta
    usage: Usage


class MessageStop(Event, tag="message_stop"):
    """The end of the stream."""


AnyEvent: TypeAlias = (
    Ping | MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageDelta | MessageStop
)


encode_event: Final = NamedEventEncoder(AnyEvent).encode
"""Encodes an event."""


def make_pings() -> Callable[[], bytes]:
    """Return an encoder of waiting events: a ping, some comments, and again.

    Claude Code takes 30 pings in a row as signs of life. Its idle limit is 5 minutes, so some more time between them
    makes it wait for longer. Comments keep the connection open between them.
    """
    return partial(next, cycle([encode_event(Ping()), *[comment()] * _COMMENTS_BETWEEN_PINGS]))


class ContentBuilder:
    """Builder of a message's content.

    A call is held back until it is complete, since a started block cannot be withdrawn. A call that was cut off becomes
    a block with the complete members of its input. The text of an invalid call becomes text. White space between blocks
    is dropped.

    Args:
        shows_thinking: Whether the events include the text of the reasoning. Without it, the blocks are empty.
    """

    def __init__(self, *, shows_thinking: bool) -> None:
        self._shows_thinking = shows_thinking
        self._index = -1
        self._open_type: type[ContentBlock] | None = None
        self._call_deltas: list[ToolCallDelta] = []
        self._invalid_call: list[TokenDelta] = []
        """Text of a call that may be invalid. The next delta decides."""
        self._whitespace = ""
        """White space that may be the start of a text."""

    def add(self, deltas: Sequence[TokenDelta | ToolCallDelta]) -> Iterator[Event]:
        """Yield the events for these deltas. Adjacent texts share one event."""
        texts: list[str] = []
        kind: type[ContentBlock] = TextBlock
        for delta in deltas:
            if isinstance(delta, TokenDelta) and delta.call:
                yield from self._add_text(kind, texts)
                self._invalid_call.append(delta)
                continue
            if self._invalid_call:
                yield from self._add_invalid_call()
            if isinstance(delta, ToolCallDelta):
                yield from self._add_text(kind, texts)
                yield from self._add_call(delta)
            elif delta.token:
                new_kind = ThinkingBlock if delta.channel == "reasoning" else TextBlock
                if new_kind is not kind:
                    yield from self._add_text(kind, texts)
                    kind = new_kind
                texts.append(delta.token)
        yield from self._add_text(kind, texts)

    def end(self, *, cut: bool) -> Iterator[Event]:
        """Yield the events that end the content.

        Args:
            cut: Whether the answer was cut off.
        """
        if self._invalid_call and not cut:
            yield from self._add_invalid_call()
        elif self._call_deltas:
            yield from self._finish_call()
        yield from self._close_block()

    def _close_block(self) -> Iterator[Event]:
        """Yield the events that end the open block."""
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

    def _add_call(self, delta: ToolCallDelta) -> Iterator[Event]:
        self._call_deltas.append(delta)
        if delta.complete:
            yield from self._finish_call()

    def _add_invalid_call(self) -> Iterator[Event]:
        """Yield the events for the text of an invalid call."""
        self._call_deltas, invalid, self._invalid_call = [], self._invalid_call, []
        for delta in invalid:
            yield from self._add_text(ThinkingBlock if delta.channel == "reasoning" else TextBlock, [delta.token])

    def _finish_call(self) -> Iterator[Event]:
        call, self._call_deltas, self._invalid_call = self._call_deltas, [], []
        first, arguments = call[0], "".join(each.arguments for each in call)
        yield from self._open_block(ToolUseBlock(client_call_id(first.call_id, ANTHROPIC_PREFIX), first.name or "", {}))
        yield ContentBlockDelta(
            self._index, InputJsonDelta(arguments if call[-1].complete else complete_members(arguments))
        )
        yield from self._close_block()

    def _open_block(self, block: ContentBlock) -> Iterator[Event]:
        yield from self._close_block()
        self._index += 1
        self._open_type = type(block)
        yield ContentBlockStart(self._index, block)


def collect_content(events: Iterable[Event]) -> list[ContentBlock]:
    """Return the content that a whole stream's events describe."""
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
