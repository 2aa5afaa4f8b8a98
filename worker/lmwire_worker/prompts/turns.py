"""Turns: a request's messages in a form that does not depend on the chat template."""

import json
from collections.abc import Container, Sequence
from typing import Any, Final

from msgspec import Struct

from lmwire_protocol import CalledTool, Message, RequestError

from ..media import MediaKind
from .media_notes import message_text

ROLES: Final = ("system", "user", "assistant", "tool")
"""The roles that every conversation may have. A bridge session may send others."""


class ToolCall(Struct, frozen=True):
    """A tool call of an assistant's turn."""

    id: str
    name: str
    arguments: dict[str, Any]


class Turn(Struct, frozen=True):
    """One message."""

    role: str
    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """Id of the call that a tool's turn answers."""
    name: str = ""
    """Name of the function of a tool's turn; empty if unknown."""


def read_turns(
    messages: Sequence[Message], *, strict_media: bool, supported_kinds: Container[MediaKind] = ()
) -> list[Turn]:
    """Return messages as turns, with a marker for each image or sound that the model takes.

    Args:
        messages: The request's messages.
        strict_media: Refuse media that the model does not take. Otherwise a note in the text counts it.
        supported_kinds: The kinds of media that the model takes.

    Raises:
        RequestError: invalid_request, unsupported: the error names the path of the part or of the arguments.
    """
    turns: list[Turn] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        calls = tuple(_read_call(call, f"{path}.tool_calls[{at}]") for at, call in enumerate(message.tool_calls))
        names |= {call.id: call.name for call in calls}
        call_id = message.tool_call_id or ""
        turns.append(
            Turn(
                role="system" if message.role == "developer" else message.role,
                text=message_text(message, path, strict=strict_media, supported_kinds=supported_kinds),
                reasoning=message.reasoning or "",
                calls=calls,
                call_id=call_id,
                name=message.name or names.get(call_id, ""),
            )
        )
    return turns


def _read_call(call: CalledTool, path: str) -> ToolCall:
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")  # a call without arguments often comes as no text at all
        except (ValueError, RecursionError) as error:
            raise _arguments_error(path, f"is not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise _arguments_error(path, "is JSON, but no object")
    return ToolCall(call.id, call.name, arguments)


def _arguments_error(path: str, problem: str) -> RequestError:
    field = f"{path}.arguments"
    return RequestError("invalid_request", f"{field}: {problem}; give an object, or its text", field=field)
