"""A request's messages as turns: what is said and called, before any template's wishes."""

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lmwire_protocol import CalledTool, Message, RequestError

from ..media import Kind
from .media_notes import message_text

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of an assistant's turn."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """A message in plain terms."""

    role: Role
    text: str
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    """Of a tool's turn: the call that it answers."""
    name: str = ""
    """Of a tool's turn: its function, where that is known."""


def read_turns(messages: Sequence[Message], *, strict_media: bool, takes: Container[Kind] = ()) -> list[Turn]:
    """What is said; what the model takes of images and sounds are marks.

    Raises:
        RequestError: invalid_request and unsupported, with the part's or the argument's path.
    """
    turns: list[Turn] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        calls = tuple(_call(call, f"{path}.tool_calls[{at}]") for at, call in enumerate(message.tool_calls))
        names |= {call.id: call.name for call in calls}
        call_id = message.tool_call_id or ""
        turns.append(
            Turn(
                role="system" if message.role == "developer" else message.role,
                text=message_text(message, path, strict=strict_media, takes=takes),
                reasoning=message.reasoning or "",
                calls=calls,
                call_id=call_id,
                name=message.name or names.get(call_id, ""),
            )
        )
    return turns


def _call(call: CalledTool, path: str) -> Call:
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")  # a call without arguments often comes as no text at all
        except (ValueError, RecursionError) as error:
            raise _no_object(path, f"is not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise _no_object(path, "is JSON, but no object")
    return Call(call.id, call.name, arguments)


def _no_object(path: str, problem: str) -> RequestError:
    field = f"{path}.arguments"
    return RequestError("invalid_request", f"{field}: {problem}; give an object, or its text", field=field)
