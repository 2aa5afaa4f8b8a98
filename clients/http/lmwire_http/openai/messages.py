"""Messages of a chat completion, with their parts, and their conversion for the client library, one to one."""

import re
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from lmwire import MediaPartDict, MessageDict, TextPartDict

from ..errors import ApiError, invalid_field
from ..http.body import weigh
from ..inference.call_ids import CallIds
from ..inference.media import audio_input, image_input
from ..limits import Calls, JsonObject, Parts
from .request_fields import reject_fields

PartDict: TypeAlias = TextPartDict | MediaPartDict


class _Part(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True):
    prompt_cache_breakpoint: JsonObject | None = None
    """Ignored: shared prefixes are always cached."""


class TextPart(_Part, tag="text"):
    """A text."""

    text: str


class RefusalPart(_Part, tag="refusal"):
    """A refusal of the assistant. The model reads it as text."""

    refusal: str


class ImageUrl(Struct, kw_only=True, forbid_unknown_fields=True):
    """The location of an image."""

    url: str
    """A data URI, an http or https URL (needs `--media-urls`), or a file's path or URL (needs `--media-dir`)."""
    detail: str | None = None
    """Ignored: the model sees the image at its own resolution."""


class ImagePart(_Part, tag="image_url"):
    """An image."""

    image_url: ImageUrl | str
    """The location, which may also be its URL alone."""


class InputAudio(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sound."""

    data: str
    """Base64, an http or https URL (needs `--media-urls`), or a file's path or URL (needs `--media-dir`)."""
    format: str | None = None
    """Ignored: the content shows its format."""


class AudioPart(_Part, tag="input_audio"):
    """A sound."""

    input_audio: InputAudio


class FilePart(_Part, tag="file"):
    """A file. Not supported."""

    file: Any = None


Part: TypeAlias = TextPart | RefusalPart | ImagePart | AudioPart | FilePart
Content: TypeAlias = str | Parts[Part]


def wire_content(content: Content, path: str) -> str | list[PartDict]:
    """Return a message's content as the client library takes it. A newline separates adjacent texts.

    Args:
        content: The content in the request.
        path: The path of the message in the request.

    Raises:
        ApiError: A part is not supported.
    """
    if isinstance(content, str):
        return content
    return separate_texts([_wire_part(part, f"{path}.content[{place}]") for place, part in enumerate(content)])


def separate_texts(parts: list[PartDict]) -> list[PartDict]:
    """Return the parts with a newline between adjacent texts, which the worker joins as they are."""
    for part, following in pairwise(parts):
        if part["type"] == "text" and following["type"] == "text":
            part["text"] += "\n"
    return parts


def _wire_part(part: Part, path: str) -> PartDict:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case RefusalPart():
            return {"type": "text", "text": part.refusal}
        case ImagePart():
            if isinstance(part.image_url, str):
                return {"type": "image", "media": image_input(part.image_url, f"{path}.image_url")}
            return {"type": "image", "media": image_input(part.image_url.url, f"{path}.image_url.url")}
        case AudioPart():
            return {"type": "audio", "media": audio_input(part.input_audio.data, f"{path}.input_audio.data")}
        case FilePart():
            raise invalid_field(f"{path}: files are not supported; send their text as a part of type text", path)


class FunctionCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """The function and arguments of a call."""

    name: str
    arguments: str | JsonObject
    """An object, or its JSON text; see `wire_arguments` for other text."""
    parsed_arguments: Any = None
    """Ignored: OpenAI's own client adds it to messages that it has parsed."""


class ToolCall(Struct, kw_only=True, forbid_unknown_fields=True):
    """A call that the model made earlier in the conversation."""

    id: str = ""
    """May be absent; see `CallIds`."""
    function: FunctionCall
    type: Literal["function"] = "function"
    index: int | None = None
    """Ignored: clients that build the call from a stream's deltas keep it."""


class _Message(Struct, tag_field="role", kw_only=True, forbid_unknown_fields=True):
    name: str | None = None
    """The speaker, whose name reaches templates that write it; of a tool's message, the function."""


class SystemMessage(_Message, tag="system"):
    """Instructions for the model."""

    content: Content


class DeveloperMessage(_Message, tag="developer"):
    """Instructions for the model, by the newer name of the role."""

    content: Content


class UserMessage(_Message, tag="user"):
    """A message of the user."""

    content: Content


class AssistantMessage(_Message, tag="assistant"):
    """An earlier answer of the model."""

    content: Content | None = None
    """May be absent with tool calls or a refusal."""
    tool_calls: Calls[ToolCall] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    """Another name of `reasoning_content`. If a message has both, they have the same text."""
    refusal: str | None = None
    """A refusal, which takes the place of the content."""
    annotations: Parts[Any] | None = None
    """Ignored: sources of text from a search."""
    parsed: Any = None
    """Ignored, as is `parsed_arguments`."""
    audio: Any = None
    """Not supported."""
    function_call: FunctionCall | None = None
    """A call in the format before tools."""


class ToolMessage(_Message, tag="tool"):
    """The result of a tool call."""

    content: Content | None
    """Null is a result without text."""
    tool_call_id: str = ""
    """May be absent; see `CallIds`."""


class FunctionMessage(_Message, tag="function"):
    """The result of a function call, in the format before tools."""

    content: Content | None = None


Message: TypeAlias = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage


_UNSUPPORTED: Final = {"audio": "audio answers are not stored; send their text as content"}
_INVALID_ARGUMENTS: Final = "unreadable_arguments"
_SHORT_ARGUMENTS: Final = 16 * 1024
"""Length of arguments, in characters, up to which they take no time to decode, whatever they are."""
_MEDIA: Final = re.compile(r"(^messages\[\d+\]\.content\[\d+\])\.media(\.\w+)?")
_REASONING: Final = re.compile(r"(^messages\[\d+\])\.reasoning$")
_TOOL_CALL: Final = re.compile(r"^messages\[(\d+)\]\.tool_calls\[\d+\](?=\.(?:name|arguments)\b)")


def wire_messages(messages: list[Message]) -> list[MessageDict]:
    """Return the messages as the client library takes them.

    Raises:
        ApiError: A message is not supported.
    """
    ids = CallIds()
    return [_wire_message(message, f"messages[{place}]", ids) for place, message in enumerate(messages)]


def wire_arguments(written: str | dict[str, Any]) -> dict[str, Any] | str:
    """Return the arguments of an earlier call as the client library takes them.

    Arguments that are not a JSON object, such as those of a call that was cut off, are wrapped in one as text. A client
    keeps such a call and answers it with an error, and the conversation must be able to continue. Arguments that take
    too long to decode are wrapped, too: they are a text of the body, so nothing has weighed what is in them.
    """
    if written and isinstance(written, str):
        try:
            if len(written) > _SHORT_ARGUMENTS:
                weigh(written.encode())
            msgspec.json.decode(written, type=dict[str, msgspec.Raw])
        except (ApiError, msgspec.DecodeError, UnicodeError, RecursionError):
            return {_INVALID_ARGUMENTS: written}
    return written


def _wire_message(message: Message, path: str, ids: CallIds) -> MessageDict:
    wire = _wire_fields(message, path, ids)
    if message.name:
        wire["name"] = message.name
    return wire


def _wire_fields(message: Message, path: str, ids: CallIds) -> MessageDict:
    match message:
        case SystemMessage():
            return {"role": "system", "content": wire_content(message.content, path)}
        case DeveloperMessage():
            return {"role": "developer", "content": wire_content(message.content, path)}
        case UserMessage():
            return {"role": "user", "content": wire_content(message.content, path)}
        case AssistantMessage():
            return _wire_assistant(message, path, ids)
        case ToolMessage():
            return _wire_result(message, message.tool_call_id, f"{path}.tool_call_id", path, ids)
        case FunctionMessage():
            return _wire_result(message, "", f"{path}.role", path, ids)


def _wire_assistant(message: AssistantMessage, path: str, ids: CallIds) -> MessageDict:
    reject_fields(message, _UNSUPPORTED, path)
    if message.reasoning and message.reasoning_content and message.reasoning != message.reasoning_content:
        problem = "is another name of reasoning_content, and their texts differ; give one"
        raise invalid_field(f"{path}.reasoning: {problem}", f"{path}.reasoning")
    wire: MessageDict = {"role": "assistant"}
    content = message.refusal if message.content is None else message.content
    if content is not None:
        wire["content"] = wire_content(content, path)
    if reasoning := message.reasoning_content or message.reasoning:
        wire["reasoning"] = reasoning
    if calls := _calls(message):
        ids.begin_turn()
        wire["tool_calls"] = [
            {
                "id": ids.of_call(call.id),
                "name": call.function.name,
                "arguments": wire_arguments(call.function.arguments),
            }
            for call in calls
        ]
    return wire


def _calls(message: AssistantMessage) -> list[ToolCall]:
    if message.tool_calls or message.function_call is None:
        return message.tool_calls or []
    return [ToolCall(function=message.function_call)]


def _wire_result(
    message: ToolMessage | FunctionMessage, call_id: str, field: str, path: str, ids: CallIds
) -> MessageDict:
    return {
        "role": "tool",
        "tool_call_id": ids.of_result(call_id, field),
        "content": wire_content(message.content or "", path),
    }


def client_field(messages: list[Message], field: str) -> str:
    """Return the client's name of a worker's field within `messages`.

    Args:
        messages: The request's messages.
        field: The path of the worker's field.
    """
    field = _MEDIA.sub(r"\1", field)
    field = _REASONING.sub(r"\1.reasoning_content", field)
    return _TOOL_CALL.sub(partial(_call_path, messages), field)


def _call_path(messages: list[Message], found: re.Match[str]) -> str:
    """Return the path of a call's function, which may be the message's `function_call`."""
    message = messages[int(found[1])]
    if isinstance(message, AssistantMessage) and not message.tool_calls:
        return f"messages[{found[1]}].function_call"
    return f"{found[0]}.function"
