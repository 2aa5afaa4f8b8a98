"""Ids of tool calls in a conversation, also for clients that leave them out."""

from collections import OrderedDict

from ..errors import invalid_field


class CallIds:
    """The ids of a conversation's calls. Results without an id belong to the calls of the last turn, in their order.

    Made ids depend only on the conversation, so that its next turn has the same prompt. Each operation takes constant
    time on average, whatever a conversation contains.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._unanswered: OrderedDict[str, None] = OrderedDict()
        """The ids of the turn's calls without a result, in order."""
        self._next_number = 1

    def begin_turn(self) -> None:
        """Begin a turn with calls."""
        self._unanswered.clear()

    def of_call(self, id: str) -> str:
        """Return the id of the turn's next call.

        Args:
            id: The client's id; empty without one.
        """
        id = id or self._make_id()
        self._known.add(id)
        self._unanswered[id] = None
        return id

    def of_result(self, id: str, field: str) -> str:
        """Return the id of the call that a result answers.

        Args:
            id: The client's id; empty without one.
            field: The path of the id in the request.

        Raises:
            ApiError: The result has no id, and every call has a result.
        """
        if id:
            self._unanswered.pop(id, None)
            return id
        if not self._unanswered:
            problem = "no earlier call waits for a result; send the call's message before this one, or the call's id"
            raise invalid_field(f"{field}: {problem}", field)
        return self._unanswered.popitem(last=False)[0]

    def _make_id(self) -> str:
        while (id := f"call_{self._next_number}") in self._known:
            self._next_number += 1
        return id
