"""The messages of a chat completion, and what they are on the wire. Each becomes one, so that places stay the same."""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from lmwire import MessageDict

from ..errors import invalid_field
from .content_parts import Content, wire_content
from .unsupported_fields import refuse


class CalledFunction(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was called."""

    name: str
    arguments: str
    """A JSON object's text; see `wire_arguments` for any other."""
    parsed_arguments: Any = None
    """Harmless: what OpenAI's own client leaves in a message that it has parsed."""


class EarlierCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """A call that the model made earlier in the conversation."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int | None = None
    """Harmless: what a client keeps that put the call together of a stream's deltas."""


class _Message(Struct, tag_field="role", kw_only=True, forbid_unknown_fields=True):
    name: str | None = None
    """Harmless: templates have no place for who speaks besides the role."""


class SystemMessage(_Message, tag="system"):
    """What the model is to keep to."""

    content: Content


class DeveloperMessage(_Message, tag="developer"):
    """The same by its newer name."""

    content: Content


class UserMessage(_Message, tag="user"):
    """What the model is asked."""

    content: Content


class AssistantMessage(_Message, tag="assistant"):
    """What the model answered."""

    content: Content | None = None
    """May be missing where there are calls, or a refusal."""
    tool_calls: list[EarlierCall] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    """Another name of `reasoning_content`: one of them at most."""
    refusal: str | None = None
    """What it said instead of a content."""
    annotations: list[Any] | None = None
    """Harmless: where a text that was searched for came from."""
    parsed: Any = None
    """Harmless, as `parsed_arguments` is."""
    audio: Any = None
    """Refused."""
    function_call: Any = None
    """Refused."""


class ToolMessage(_Message, tag="tool"):
    """What a call came to."""

    content: Content
    tool_call_id: str


class FunctionMessage(_Message, tag="function"):
    """What a call came to, in a shape of before there were tools; refused."""

    content: Any = None


Message: TypeAlias = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage


_REFUSED: Final = {
    "audio": "earlier answers in sound are not kept here; send their text as content",
    "function_call": "is of before there were tools; send tool_calls",
}
_UNREADABLE: Final = "unreadable_arguments"
_MEDIA: Final = re.compile(r"(^messages\[\d+\]\.content\[\d+\])\.media(\.\w+)?")
_THOUGHT: Final = re.compile(r"(^messages\[\d+\])\.reasoning$")
_CALLED: Final = re.compile(r"(^messages\[\d+\]\.tool_calls\[\d+\])\.name")


def wire_messages(messages: list[Message]) -> list[MessageDict]:
    """The messages as the client library takes them.

    Raises:
        ApiError: one of them cannot be sent.
    """
    return [_wire_message(message, f"messages[{place}]") for place, message in enumerate(messages)]


def wire_arguments(written: str) -> dict[str, Any] | str:
    """The arguments of an earlier call as the client library takes them.

    Those that are no object, as an answer leaves them that was cut off inside a call, are told as they were written: a
    client that keeps such a turn, and answers it with what was wrong, could not go on otherwise.
    """
    if written:
        try:
            msgspec.json.decode(written, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return {_UNREADABLE: written}
    return written


def _wire_message(message: Message, path: str) -> MessageDict:
    match message:
        case SystemMessage():
            return {"role": "system", "content": wire_content(message.content, path)}
        case DeveloperMessage():
            return {"role": "developer", "content": wire_content(message.content, path)}
        case UserMessage():
            return {"role": "user", "content": wire_content(message.content, path)}
        case AssistantMessage():
            return _assistant(message, path)
        case ToolMessage():
            return _tool_result(message, path)
        case FunctionMessage():
            field = f"{path}.role"
            raise invalid_field(f"{field}: `function` is not served; send role `tool` with a tool_call_id", field)


def _assistant(message: AssistantMessage, path: str) -> MessageDict:
    refuse(message, _REFUSED, path)
    if message.reasoning is not None and message.reasoning_content is not None:
        raise invalid_field(f"{path}.reasoning: is another name of reasoning_content; give one", f"{path}.reasoning")
    wire: MessageDict = {"role": "assistant"}
    content = message.refusal if message.content is None else message.content
    if content is not None:
        wire["content"] = wire_content(content, path)
    if thought := message.reasoning_content or message.reasoning:
        wire["reasoning"] = thought
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "name": call.function.name, "arguments": wire_arguments(call.function.arguments)}
            for call in message.tool_calls
        ]
    return wire


def _tool_result(message: ToolMessage, path: str) -> MessageDict:
    wire: MessageDict = {
        "role": "tool",
        "tool_call_id": message.tool_call_id,
        "content": wire_content(message.content, path),
    }
    if message.name:
        wire["name"] = message.name
    return wire


def renamed(field: str) -> str:
    """The client's name of a field within `messages` on the wire."""
    field = _MEDIA.sub(r"\1", field)
    field = _THOUGHT.sub(r"\1.reasoning_content", field)
    return _CALLED.sub(r"\1.function.name", field)
