"""The calls that tool messages answer, where the messages do not name them."""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from .commands import Chat, Command, Tokenize
from .errors import RequestError
from .messages import CalledTool, Message

AnyCommand = TypeVar("AnyCommand", bound=Command)


def with_call_ids(command: AnyCommand) -> AnyCommand:
    """Return a command in which each tool's message names the call that it answers.

    Raises:
        RequestError: invalid_request: A tool's message names no call, and none is open.
    """
    if not isinstance(command, Chat | Tokenize) or not command.messages:
        return command
    if all(message.tool_call_id or message.role != "tool" for message in command.messages):
        return command
    return replace(command, messages=_matched(command.messages))


def _matched(messages: list[Message]) -> list[Message]:
    found: list[Message] = []
    calls = _OpenCalls(())
    for index, message in enumerate(messages):
        if message.tool_calls:
            calls = _OpenCalls(message.tool_calls)
        answered = message.tool_call_id
        if message.role == "tool" and answered is None:
            answered = calls.first(message.name)
            if answered is None:
                raise _no_open_call(message, f"messages[{index}].tool_call_id")
        calls.close(answered)
        found.append(message if answered == message.tool_call_id else replace(message, tool_call_id=answered))
    return found


def _no_open_call(message: Message, field: str) -> RequestError:
    function = "" if message.name is None else f" of {message.name!r}"
    problem = f"is required, because no call{function} is open before this message; give the id of a call"
    return RequestError("invalid_request", f"`{field}`: {problem}", field=field)


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
        ids = self._all if name is None else self._by_name.get(name, deque[str]())
        while ids and ids[0] not in self._open:
            ids.popleft()
        return ids[0] if ids else None

    def close(self, id: str | None) -> None:
        """Note that a call has its result."""
        self._open.discard(id or "")
