"""Features that a command needs: a host sends it only to a worker whose `features` list them."""

from typing import TYPE_CHECKING, Any

import msgspec

from lmwire_protocol import FEATURES, Command

if TYPE_CHECKING:
    from lmwire_protocol.json_value import JsonValue


def features_used(command: Command) -> set[str]:
    """Return the features that the command uses, which protocol 1.0 did not have."""
    fields: dict[str, Any] = msgspec.to_builtins(command, str_keys=True)
    used = {command.name, *(f"{command.name}.{field}" for field in fields)}
    used |= {f"{command.name}.tool_choice.{name}" for name in _members(fields.get("tool_choice"))}
    used |= {f"{command.name}.input.{part.get('type')}" for part in _objects(fields.get("input"))}
    for message in _objects(fields.get("messages")):
        used |= {f"{command.name}.messages.{name}" for name in message}
        used |= {f"{command.name}.messages.tool_calls.{name}" for name in _members(message.get("tool_calls"))}
        if message.get("role") == "tool" and message.get("tool_call_id") is None:
            used.add(f"{command.name}.messages.tool_call_id.absent")
        used.add(f"{command.name}.messages.role.{message.get('role')}")
        used |= {f"{command.name}.messages.content.{part.get('type')}" for part in _objects(message.get("content"))}
    return used.intersection(FEATURES)


def _members(value: "JsonValue") -> set[str]:
    """Return the names of the members of an object, or of all objects in a list."""
    return {name for item in _objects(value if isinstance(value, list) else [value]) for name in item}


def _objects(value: "JsonValue") -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, (list, tuple)) else []
