"""The client's names of the worker's fields, for error messages."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_MESSAGE: Final = re.compile(r"messages\[(\d+)\](.*)")
_PLACE: Final = re.compile(r"\.(content|tool_calls)\[(\d+)\](.*)")
_RENAMED_FIELDS: Final = (
    (re.compile(r"^stop\b"), "stop_sequences"),
    (re.compile(r"^format\b"), "output_config.format"),
    (re.compile(r"^reasoning_budget$"), "thinking.budget_tokens"),
    (re.compile(r"^reasoning$"), "thinking"),
    (re.compile(r"^parallel_tool_calls$"), "tool_choice.disable_parallel_tool_use"),
)


class MessageSource(NamedTuple):
    """The origin of a worker's message in the request."""

    path: str
    """The path of the client's message or block."""
    parts: Sequence[str]
    """The paths of the parts' blocks; empty if the content is a text."""
    calls: Sequence[str]
    """The paths of the calls' blocks."""


def client_field(field: str, origins: Sequence[MessageSource], last: int) -> str:
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
