"""Ids of tool calls: those of the worker, with the prefix that the clients of an API expect."""

from collections.abc import Sequence
from typing import Any, Final, cast

from lmwire import MessageDict

OPENAI_PREFIX: Final = "call_"
ANTHROPIC_PREFIX: Final = "toolu_"


def client_call_id(call_id: str | None, prefix: str) -> str:
    """Return the client's id of a call.

    Args:
        call_id: The worker's id.
        prefix: The API's prefix.
    """
    call_id = call_id or ""
    return call_id if call_id.startswith(prefix) else prefix + call_id


def restore_call_ids(messages: Sequence[MessageDict], prefix: str) -> None:
    """Remove the prefix from all ids in messages. Some models expect the ids that they wrote, such as `functions.f:0`.

    Args:
        messages: The messages, which are changed.
        prefix: The API's prefix.
    """
    for message in cast("Sequence[dict[str, Any]]", messages):
        if call_id := message.get("tool_call_id"):
            message["tool_call_id"] = _without_prefix(call_id, prefix)
        for call in message.get("tool_calls", ()):
            call["id"] = _without_prefix(call["id"], prefix)


def _without_prefix(call_id: str, prefix: str) -> str:
    return call_id.removeprefix(prefix) or call_id
