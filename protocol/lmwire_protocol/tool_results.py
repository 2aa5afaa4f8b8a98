"""The calls that tool messages answer, where the messages do not name them."""

from collections import defaultdict, deque
from collections.abc import Sequence

from msgspec.structs import replace

from .messages import CalledTool, Message


def with_call_ids(messages: list[Message]) -> list[Message]:
    """Return messages in which each tool's message names the call that it answers.

    Args:
        messages: The conversation. It is unchanged.

    Raises:
        ValueError: A tool's message names no call, and none is open.
    """
    if all(message.tool_call_id or message.role != "tool" for message in messages):
        return messages
    found: list[Message] = []
    calls = _OpenCalls(())
    for index, message in enumerate(messages):
        if message.tool_calls:
            calls = _OpenCalls(message.tool_calls)
        answered = message.tool_call_id
        if message.role == "tool" and answered is None:
            answered = calls.first(message.name)
            if answered is None:
                raise ValueError(f"messages[{index}].tool_call_id: {_problem(message)}")
        calls.close(answered)
        found.append(message if answered == message.tool_call_id else replace(message, tool_call_id=answered))
    return found


def _problem(message: Message) -> str:
    function = "" if message.name is None else f" of {message.name!r}"
    return f"is required, because no call{function} is open before this message; give the id of a call"


class _OpenCalls:
    """Calls without a result, in order. Each operation takes constant time on average, whatever a line contains.

    Args:
        calls: The calls of one message.
    """

    def __init__(self, calls: Sequence[CalledTool]) -> None:
        self._open = {call.id for call in calls}
        self._all = deque(call.id for call in calls)
        self._by_name: defaultdict[str, deque[str]] = defaultdict(deque)
        for call in calls:
            self._by_name[call.name].append(call.id)

    def first(self, name: str | None) -> str | None:
        """Return the id of the first open call, or of the first one of a function; None if there is none."""
        ids = self._all if name is None else self._by_name.get(name, deque())
        while ids and ids[0] not in self._open:
            ids.popleft()
        return ids[0] if ids else None

    def close(self, id: str | None) -> None:
        """Note that a call has its result."""
        self._open.discard(id or "")
