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

    An id keeps its prefix if another call has the id without it, so that each result stays with its call.

    Args:
        messages: The messages, which are changed.
        prefix: The API's prefix.
    """
    plain = cast("Sequence[dict[str, Any]]", messages)
    kept = {"", *(call["id"] for message in plain for call in message.get("tool_calls", ()))}

    def restored(call_id: str) -> str:
        shorter = call_id.removeprefix(prefix)
        return call_id if shorter in kept else shorter

    for message in plain:
        if call_id := message.get("tool_call_id"):
            message["tool_call_id"] = restored(call_id)
        for call in message.get("tool_calls", ()):
            call["id"] = restored(call["id"])
