"""Conversion of items to messages. One message holds the reasoning, text and calls of one assistant turn."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, cast

from lmwire import MessageDict

from ...errors import invalid_field
from ...inference.media import image_input
from ..messages import PartDict, separate_texts, wire_arguments
from .items import (
    AdditionalTools,
    Call,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    InputFile,
    InputImage,
    InputItem,
    InputText,
    Message,
    MessagePart,
    OutputText,
    Reasoning,
    Refusal,
)
from .tools import function_name, input_arguments

_MESSAGE: Final = re.compile(r"messages\[(\d+)\](?:\.content)?(.*)")
_MEDIA: Final = re.compile(r"\.media(\.\w+)?")


class _Source(NamedTuple):
    """The origin of a message in the request."""

    item: str
    """The path of the item."""
    content: str
    """The item's field with the content; empty if paths within it are unknown to the client."""


class Conversation:
    """The messages of a response request.

    Args:
        instructions: The system message; None without one.
        earlier: The items of the stored conversation, up to its last response.
        items: The request's own items. None is one that is left out.

    Raises:
        ApiError: An item is not supported.
    """

    def __init__(
        self, instructions: str | None, earlier: Iterable[InputItem], items: Sequence[InputItem | None]
    ) -> None:
        self.messages: list[MessageDict] = []
        self._sources: list[_Source] = []
        self._texts: dict[tuple[int, str], list[str]] = {}
        """The texts of each message's field that several items may add to. They are joined once."""
        if instructions:
            self._add({"role": "system", "content": instructions}, _Source("instructions", ""))
        for item in earlier:
            self._add_item(item, "previous_response_id")
        for number, item in enumerate(items):
            if item is not None:
                self._add_item(item, f"input[{number}]")
        if not self.messages:
            raise invalid_field("input: has no item that the model can read; add a message", "input")
        for (number, field), texts in self._texts.items():
            cast(Any, self.messages[number])[field] = "".join(texts)
        for message in self.messages:
            if "tool_calls" not in message:
                message.setdefault("content", "")

    def client_field(self, field: str) -> str | None:
        """Return the client's name of a worker's field within the messages; None for other fields."""
        found = _MESSAGE.fullmatch(field)
        if not found or int(found[1]) >= len(self._sources):
            return None
        place, rest = self._sources[int(found[1])], _MEDIA.sub(".image_url", found[2])
        return f"{place.item}.{place.content}{rest}" if place.content else place.item

    def _add(self, message: MessageDict, place: _Source) -> None:
        self.messages.append(message)
        self._sources.append(place)

    def _add_item(self, item: InputItem, path: str) -> None:
        match item:
            case Message(role="assistant"):
                self._add_text(self._turn(path, "tool_calls"), "content", _joined_text(item))
            case Message():
                where = f"{path}.content"
                content = item.content if isinstance(item.content, str) else _parts(item.content, where)
                self._add({"role": item.role, "content": content}, _source(path, "content"))
            case Reasoning():
                self._add_text(self._turn(path, "content", "tool_calls"), "reasoning", _joined_reasoning(item))
            case AdditionalTools():
                pass  # the tool set has them
            case FunctionCall():
                self._add_call(item, wire_arguments(item.arguments), path)
            case CustomToolCall():
                self._add_call(item, input_arguments(item.input), path)
            case FunctionCallOutput() | CustomToolCallOutput():
                where = f"{path}.output"
                output = item.output if isinstance(item.output, str) else _parts(item.output, where)
                message: MessageDict = {"role": "tool", "tool_call_id": item.call_id, "content": output}
                self._add(message, _source(path, "output"))

    def _add_text(self, turn: Any, field: str, text: str) -> None:
        """Add a text to the last message, which is the turn."""
        turn[field] = ""  # the field keeps its place among the others
        self._texts.setdefault((len(self.messages) - 1, field), []).append(text)

    def _add_call(self, item: Call, arguments: dict[str, Any] | str, path: str) -> None:
        name = function_name(item.name, item.namespace)
        call: Any = {"id": item.call_id, "name": name, "arguments": arguments}
        self._turn(path).setdefault("tool_calls", []).append(call)

    def _turn(self, path: str, *later: str) -> Any:
        """Return the last message if it is the assistant's and has none of the later fields, else a new one."""
        last: Any = self.messages[-1] if self.messages else {}
        if last.get("role") != "assistant" or any(name in last for name in later):
            self._add({"role": "assistant"}, _Source(path, ""))
        return self.messages[-1]


def _source(path: str, content: str) -> _Source:
    return _Source(path, content if path.startswith("input[") else "")


def _joined_text(item: Message) -> str:
    if isinstance(item.content, str):
        return item.content
    return "".join(_text(part) for part in item.content)


def _joined_reasoning(item: Reasoning) -> str:
    return "".join(part.text for part in item.content or item.summary)


def _parts(parts: Sequence[MessagePart], path: str) -> list[PartDict]:
    return separate_texts([_part(part, f"{path}[{number}]") for number, part in enumerate(parts)])


def _part(part: MessagePart, path: str) -> PartDict:
    match part:
        case InputImage(image_url=str(url)):
            return {"type": "image", "media": image_input(url, f"{path}.image_url")}
        case InputImage():
            field = f"{path}.file_id"
            raise invalid_field(f"{field}: files are not stored; send the image as `image_url`", field)
        case InputFile():
            raise invalid_field(f"{path}: files are not supported; send their text as a part of type input_text", path)
        case _:
            return {"type": "text", "text": _text(part)}


def _text(part: MessagePart) -> str:
    match part:
        case InputText() | OutputText():
            return part.text
        case Refusal():
            return part.refusal
        case _:
            return ""
