"""Conversion of Anthropic's messages for the client library. Results of tool calls become messages of their own.

Blocks of tools that ran on Anthropic's servers, in conversations that started there, become text.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from lmwire import MediaPartDict, MessageDict, TextPartDict

from ..errors import invalid_field
from ..inference.call_ids import ANTHROPIC_PREFIX, restore_call_ids
from ..inference.media import image_input
from .request import (
    AssistantMessage,
    Base64Source,
    Compaction,
    ContainerUpload,
    ContentInput,
    ContentSource,
    CountTokensRequest,
    Document,
    Image,
    McpToolUse,
    Message,
    RedactedThinking,
    SearchResult,
    ServerBlock,
    ServerToolUse,
    SystemMessage,
    SystemText,
    Text,
    Thinking,
    ToolAddition,
    ToolDefinition,
    ToolReference,
    ToolRemoval,
    ToolResult,
    ToolUse,
    UserMessage,
)

_MESSAGE: Final = re.compile(r"messages\[(\d+)\](.*)")
_PLACE: Final = re.compile(r"\.(content|tool_calls)\[(\d+)\](.*)")
_RENAMED_FIELDS: Final = (
    (re.compile(r"^stop\b"), "stop_sequences"),
    (re.compile(r"^format\b"), "output_config.format"),
    (re.compile(r"^reasoning_budget$"), "thinking.budget_tokens"),
    (re.compile(r"^reasoning_effort$"), "output_config.effort"),
    (re.compile(r"^reasoning$"), "thinking"),
    (re.compile(r"^parallel_tool_calls$"), "tool_choice.disable_parallel_tool_use"),
)
_TEXTS: Final = ("title", "url", "text", "stdout", "stderr", "error_code", "tool_name")
"""Members of a result that are text for the model. The rest is encrypted, or of no use to it."""
_NESTED: Final = ("content", "source", "tool_references")
_MAX_DEPTH: Final = 8
_BILLING_HEADER: Final = re.compile(r"x-anthropic-billing-header:(?: [\w-]+=[^;\n]*;)*\s*")
"""A block of Claude Code's system prompt. It differs in each request, so the cache would miss all that follows it."""

PartDict: TypeAlias = TextPartDict | MediaPartDict


class MessageSource(NamedTuple):
    """The origin of a worker's message in the request."""

    path: str
    """The path of the client's message or block."""
    parts: Sequence[str]
    """The paths of the parts' blocks; empty if the content is a text."""
    calls: Sequence[str]
    """The paths of the calls' blocks."""


def _client_field(field: str, origins: Sequence[MessageSource], last: int) -> str:
    """Return the path of a worker's field in the client's body.

    Args:
        field: The path in the worker's request.
        origins: The sources of the worker's messages.
        last: The index of the client's last message, which may have become the `prefix`.
    """
    if field == "prefix":
        return f"messages[{last}].content"
    if found := _MESSAGE.fullmatch(field):
        number, rest = int(found[1]), found[2]
        return _in_message(origins[number], rest) if number < len(origins) else "messages"
    for pattern, name in _RENAMED_FIELDS:
        if pattern.match(field):
            return pattern.sub(name, field)
    return field


def _in_message(origin: MessageSource, rest: str) -> str:
    if origin.path == "system":
        return "system"
    found = _PLACE.fullmatch(rest)
    if not found:
        return origin.path + rest
    places = origin.parts if found[1] == "content" else origin.calls
    number = int(found[2])
    if number >= len(places):
        return origin.path
    rest = found[3].replace(".media.path", ".media.url").replace(".media", ".source")
    return places[number] + rest.replace(".arguments", ".input")


def call_text(name: str, arguments: object) -> str:
    """Return a call as text.

    Args:
        name: The tool.
        arguments: Its input.
    """
    return f"\n[{name}: {json.dumps(arguments, ensure_ascii=False)}]\n"


def result_text(content: object) -> str:
    """Return the text of a result, a line for each of its parts."""
    return "".join(f"\n{line}" for line in _result_lines(content, _MAX_DEPTH)) + "\n"


def _result_lines(content: object, depth: int) -> Iterator[str]:
    if not depth:
        return
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in cast(list[Any], content):
            yield from _result_lines(item, depth - 1)
    elif isinstance(content, dict):
        part = cast(dict[str, Any], content)
        yield from (part[name] for name in _TEXTS if part.get(name) and isinstance(part[name], str))
        if part.get("media_type") == "text/plain" and isinstance(part.get("data"), str):
            yield part["data"]
        for name in _NESTED:
            yield from _result_lines(part.get(name), depth - 1)


class Conversation:
    """The messages of a request.

    Args:
        body: The request's body.

    Raises:
        ApiError: The answer cannot continue the last message.
    """

    def __init__(self, body: CountTokensRequest) -> None:
        self.messages: list[MessageDict] = []
        self._origins: list[MessageSource] = []
        self.prefix = ""
        """The start of the answer."""
        self._last_index = len(body.messages) - 1
        if system := _system_prompt(body.system):
            self._add({"role": "system", "content": system}, "system")
        for number, message in enumerate(body.messages):
            path = f"messages[{number}]"
            if isinstance(message, AssistantMessage) and number == self._last_index:
                self.prefix = _prefix(message, path)
            else:
                self._add_message(message, path)
        restore_call_ids(self.messages, ANTHROPIC_PREFIX)
        if not self.messages:
            raise invalid_field(
                "messages: hold only the start of the answer; put the message that it answers before it", "messages"
            )

    def client_field(self, field: str) -> str:
        """Return the client's name of a worker's field."""
        return _client_field(field, self._origins, self._last_index)

    def _add(self, message: MessageDict, path: str, parts: Sequence[str] = (), calls: Sequence[str] = ()) -> None:
        self.messages.append(message)
        self._origins.append(MessageSource(path, parts, calls))

    def _add_message(self, message: Message, path: str) -> None:
        match message:
            case UserMessage():
                self._add_user(message, path)
            case AssistantMessage():
                self._add_assistant(message, path)
            case SystemMessage():
                self._add({"role": "system", "content": _instruction(message.content)}, path)

    def _add_user(self, message: UserMessage, path: str) -> None:
        """Add the user's parts and the results between them, in order."""
        if isinstance(message.content, str):
            self._add({"role": "user", "content": message.content}, path)
            return
        parts: list[tuple[PartDict, str]] = []
        for place, block in _with_paths(message.content, path):
            if isinstance(block, ToolResult):
                self._add_user_parts(parts, path)
                parts = []
                self._add_result(block, place)
            else:
                parts += _parts(block, place)
        self._add_user_parts(parts, path)

    def _add_user_parts(self, parts: Sequence[tuple[PartDict, str]], path: str) -> None:
        if parts:
            content = [part for part, _ in parts]
            self._add({"role": "user", "content": content}, path, [place for _, place in parts])

    def _add_result(self, block: ToolResult, path: str) -> None:
        parts = _result(block, path)
        if block.is_error:
            parts.insert(0, ({"type": "text", "text": "Error: "}, path))
        message: MessageDict = {
            "role": "tool",
            "tool_call_id": block.tool_use_id,
            "content": [part for part, _ in parts],
        }
        self._add(message, path, [place for _, place in parts])

    def _add_assistant(self, message: AssistantMessage, path: str) -> None:
        content = message.content
        blocks = [Text(text=content)] if isinstance(content, str) else content
        calls = [(place, block) for place, block in _with_paths(blocks, path) if isinstance(block, ToolUse)]
        answer: MessageDict = {
            "role": "assistant",
            "content": "".join(_answer_text(block) for block in blocks),
        }
        if reasoning := "".join(block.thinking for block in blocks if isinstance(block, Thinking)):
            answer["reasoning"] = reasoning
        if calls:
            answer["tool_calls"] = [
                {"id": block.id, "name": block.name, "arguments": block.input} for _, block in calls
            ]
        self._add(answer, path, calls=[place for place, _ in calls])


def _prefix(message: AssistantMessage, path: str) -> str:
    if isinstance(message.content, str):
        return message.content
    for place, block in _with_paths(message.content, path):
        if not isinstance(block, Text):
            raise invalid_field(f"{place}: the last message is the start of the answer, which can only be text", place)
    return "".join(block.text for block in message.content if isinstance(block, Text))


def _result(block: ToolResult, path: str) -> list[tuple[PartDict, str]]:
    if block.content is None or isinstance(block.content, str):
        return [({"type": "text", "text": block.content or ""}, path)]
    return [part for place, inner in _with_paths(block.content, path) for part in _parts(inner, place)]


def _parts(block: ContentInput, path: str) -> list[tuple[PartDict, str]]:
    """Return the parts of a block for the model, each with its path in the request."""
    match block:
        case Text():
            return [({"type": "text", "text": block.text}, path)]
        case Image():
            return [(_image(block, path), path)]
        case SearchResult():
            text = "\n".join([block.title, block.source, *(each.text for each in block.content)])
            return [({"type": "text", "text": f"{text}\n"}, path)]
        case ToolReference():
            return [({"type": "text", "text": f"{_available(block.tool_name)}\n"}, path)]
        case ContainerUpload():
            return []
        case Document():
            head = "".join(f"{line}\n" for line in (block.title, block.context) if line)
            return [
                ({"type": "text", "text": head}, path),
                *_document(block, path),
                ({"type": "text", "text": "\n"}, path),
            ]


def _document(block: Document, path: str) -> list[tuple[PartDict, str]]:
    if not isinstance(block.source, ContentSource):
        return [({"type": "text", "text": block.source.data}, path)]
    if isinstance(block.source.content, str):
        return [({"type": "text", "text": block.source.content}, path)]
    places = _with_paths(block.source.content, f"{path}.source")
    return [part for place, each in places for part in _parts(each, place)]


def _image(block: Image, path: str) -> MediaPartDict:
    source = block.source
    if isinstance(source, Base64Source):
        return {"type": "image", "media": {"data": source.data}}
    return {"type": "image", "media": image_input(source.url, f"{path}.source.url")}


def _system_prompt(content: str | Sequence[SystemText] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(block.text for block in content if not _BILLING_HEADER.fullmatch(block.text))


def _instruction(content: str | Sequence[Text | ToolAddition | ToolRemoval]) -> str:
    if isinstance(content, str):
        return content
    lines: list[str] = []
    for block in content:
        match block:
            case Text():
                lines.append(block.text)
            case ToolAddition():
                tool = block.tool
                lines.append(_available(tool.definition.name if isinstance(tool, ToolDefinition) else tool.name))
            case ToolRemoval():
                lines.append(f"The tool {block.tool.name} is no longer available.")
    return "\n".join(lines)


def _available(tool: str) -> str:
    return f"The tool {tool} is available now."


def _answer_text(block: Text | Thinking | RedactedThinking | ToolUse | ServerBlock) -> str:
    """Return what the model reads of a block as its own text."""
    match block:
        case Text():
            return block.text
        case ServerToolUse() | McpToolUse():
            return call_text(block.name, block.input)
        case Compaction():
            return block.content or ""
        case Thinking() | RedactedThinking() | ToolUse():
            return ""
        case _:
            return result_text(block.content)


def _with_paths(blocks: Sequence[Any], path: str) -> Iterator[tuple[str, Any]]:
    return ((f"{path}.content[{number}]", block) for number, block in enumerate(blocks))
