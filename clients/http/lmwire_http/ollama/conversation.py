"""Conversion of Ollama's messages for the client library, one to one."""

import re
from collections.abc import Sequence
from typing import Any, Final

from lmwire import MessageDict

from ..inference.call_ids import OPENAI_PREFIX, CallIds, restore_call_ids
from .request_options import client_field as option_field
from .request_schema import Message

_PART: Final = re.compile(r"(messages\[(\d+)\])\.content\[(\d+)\].*")
_REASONING: Final = re.compile(r"(messages\[\d+\])\.reasoning")
_CALL: Final = re.compile(r"(messages\[\d+\]\.tool_calls\[\d+\])\.(name|arguments.*)")


def wire_messages(messages: Sequence[Message]) -> list[MessageDict]:
    """Return the messages as the client library takes them.

    Raises:
        ApiError: A tool's result belongs to no call.
    """
    ids = CallIds()
    wire = [_wire_message(message, f"messages[{place}]", ids) for place, message in enumerate(messages)]
    restore_call_ids(wire, OPENAI_PREFIX)
    return wire


def content_with_images(text: str, images: Sequence[str] | None) -> Any:
    """Return a message's content, with the images before the text, as in Ollama.

    Args:
        text: The text.
        images: The images in base64.
    """
    if not images:
        return text
    parts: list[Any] = [{"type": "image", "media": {"data": image}} for image in images]
    return [*parts, {"type": "text", "text": text}] if text else parts


def client_field(messages: Sequence[Message], field: str) -> str:
    """Return the client's name of a worker's field.

    Args:
        messages: The request's messages.
        field: The path of the worker's field.
    """
    if found := _PART.fullmatch(field):
        images = messages[int(found[2])].images or ()
        return f"{found[1]}.images[{found[3]}]" if int(found[3]) < len(images) else f"{found[1]}.content"
    if found := _REASONING.fullmatch(field):
        return f"{found[1]}.thinking"
    if found := _CALL.fullmatch(field):
        return f"{found[1]}.function.{found[2]}"
    return option_field(field)


def _wire_message(message: Message, path: str, ids: CallIds) -> MessageDict:
    wire: MessageDict = {
        "role": message.role,
        "content": content_with_images(message.content or "", message.images),
    }
    if message.role == "tool":
        call_id, name = message.tool_call_id or "", message.tool_name or ""
        wire["tool_call_id"] = ids.of_result(call_id, f"{path}.tool_call_id", name)
        if name:
            wire["name"] = name
    if message.thinking:
        wire["reasoning"] = message.thinking
    if message.tool_calls:
        ids.begin_turn()
        wire["tool_calls"] = [
            {
                "id": ids.of_call(call.id, call.function.name),
                "name": call.function.name,
                "arguments": call.function.arguments,
            }
            for call in message.tool_calls
        ]
    return wire
