"""Messages of bridge sessions, which come as they are: any role, any further keys."""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from lmwire_protocol import Chat, Message, RequestError, decode_command

_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "system": (),
    "developer": (),
    "user": (),
    "assistant": ("reasoning", "tool_calls"),
    "tool": ("tool_call_id", "name"),
}
"""For each role of version 1, the fields that only its messages have."""
_COMMON: Final = ("role", "content")
_PART_FIELDS: Final = ("type", "text", "media")
_NO_CALL: Final = "call_0"
"""Id of the call that a tool's message answers if it names none."""


def read_chat(messages: object, settings: dict[str, Any]) -> tuple[Chat, list[str]]:
    """Return a bridge's `chat`, and the paths of the keys that it ignores.

    Args:
        messages: The request's messages.
        settings: Its settings, by version 1's names.

    Raises:
        RequestError: invalid_request: a value is of a wrong type.
    """
    if not isinstance(messages, list):
        raise RequestError("invalid_request", "messages: must be a list of messages", field="messages")
    ignored: list[str] = []
    read = [_read_message(message, f"messages[{index}]", ignored) for index, message in enumerate(messages)]
    stand_ins = [{**message, "role": _known_role(message["role"])} for message in read]
    # Version 1 demands a message, and one of its own roles: the types of everything else are checked with these.
    fields = {"cmd": "chat", "messages": stand_ins or [{"role": "user", "content": ""}], **settings}
    chat = cast(Chat, decode_command(fields))
    own_roles = [_with_role(message, given["role"]) for message, given in zip(chat.messages, read, strict=False)]
    return msgspec.structs.replace(chat, messages=own_roles), ignored


def _read_message(message: object, path: str, ignored: list[str]) -> dict[str, Any]:
    """Return a message with the fields that version 1 has for its role."""
    if not isinstance(message, dict):
        raise RequestError("invalid_request", f"{path}: must be an object with role and content", field=path)
    role = message.get("role", "user")
    if not isinstance(role, str):
        raise RequestError("invalid_request", f"{path}.role: must be a string", field=f"{path}.role")
    fields = _only(message, (*_COMMON, *_FIELDS.get(role, ())), path, ignored)
    content = fields.get("content", "")
    if isinstance(content, list):
        content = [
            _only(part, _PART_FIELDS, f"{path}.content[{index}]", ignored) if isinstance(part, dict) else part
            for index, part in enumerate(content)
        ]
    if role == "tool":
        fields.setdefault("tool_call_id", _NO_CALL)
    return {**fields, "role": role, "content": content}


def _only(fields: dict[str, Any], known: Iterable[str], path: str, ignored: list[str]) -> dict[str, Any]:
    ignored += [f"{path}.{name}" for name in fields if name not in known]
    return {name: fields[name] for name in known if name in fields}


def _known_role(role: str) -> str:
    return role if role in _FIELDS else "user"


def _with_role(message: Message, role: str) -> Message:
    return message if message.role == role else msgspec.structs.replace(message, role=cast(Any, role))
