"""What a worker must know to serve a request: hosts send only what its `features` list."""

from typing import Any

import msgspec

from lmwire_protocol import FEATURES, Command


def features_used(command: Command) -> set[str]:
    """What the command uses that protocol 1.0 had not, as the entries of `features`."""
    fields: dict[str, Any] = msgspec.to_builtins(command, str_keys=True)
    used = {command.name, *(f"{command.name}.{field}" for field in fields)}
    for message in fields.get("messages", ()):
        used |= {f"{command.name}.messages.{name}" for name in _in_message(message)}
    return used.intersection(FEATURES)


def _in_message(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [*message, f"role.{message['role']}", *(f"content.{part['type']}" for part in parts)]
