"""Ids of tool calls: those of the worker with the prefix that clients expect, and those that clients leave out."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, cast

from lmwire import MessageDict

from ..errors import invalid_field

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


class CallIds:
    """The ids of a conversation's calls. Results without an id belong to the calls of the last turn, in their order.

    A result with only the name of its tool belongs to the first call of that tool.

    Made ids depend only on the conversation, so that its next turn has the same prompt. Each operation takes constant
    time on average, whatever a conversation contains.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._unanswered: OrderedDict[str, str] = OrderedDict()
        """The names of the tools that the turn's calls without a result call, by the calls' ids, in order."""
        self._ids_of_tool: dict[str, OrderedDict[str, None]] = {}
        """The ids of these calls, by the names of their tools."""
        self._next_number = 1

    def begin_turn(self) -> None:
        """Begin a turn with calls."""
        self._unanswered.clear()
        self._ids_of_tool.clear()

    def of_call(self, id: str, tool: str = "") -> str:
        """Return the id of the turn's next call.

        Args:
            id: The client's id; empty without one.
            tool: The name of the tool, for results with only that.
        """
        id = id or self._make_id()
        self._known.add(id)
        self._unanswered[id] = tool
        self._ids_of_tool.setdefault(tool, OrderedDict())[id] = None
        return id

    def of_result(self, id: str, field: str, tool: str = "") -> str:
        """Return the id of the call that a result answers.

        Args:
            id: The client's id; empty without one.
            field: The path of the id in the request.
            tool: The name of the tool; empty without one.

        Raises:
            ApiError: The result has no id, and every call has a result.
        """
        if not (id or self._unanswered):
            problem = "no earlier call waits for a result; send the call's message before this one, or the call's id"
            raise invalid_field(f"{field}: {problem}", field)
        id = id or next(iter(self._ids_of_tool.get(tool) or self._unanswered))
        if (called := self._unanswered.pop(id, None)) is not None:
            del self._ids_of_tool[called][id]
        return id

    def _make_id(self) -> str:
        while (id := f"call_{self._next_number}") in self._known:
            self._next_number += 1
        return id
