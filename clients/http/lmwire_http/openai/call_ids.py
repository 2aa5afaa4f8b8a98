"""Ids of tool calls in a conversation, also for clients that leave them out."""

from collections import deque

from ..errors import invalid_field


class CallIds:
    """The ids of a conversation's calls. Results without an id belong to the calls of the last turn, in their order.

    Made ids depend only on the conversation, so that its next turn has the same prompt.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._unanswered: deque[str] = deque()

    def begin_turn(self) -> None:
        """Begin a turn with calls."""
        self._unanswered.clear()

    def of_call(self, id: str) -> str:
        """Return the id of the turn's next call.

        Args:
            id: The client's id; empty without one.
        """
        number = len(self._known) + 1
        while not id:
            made = f"call_{number}"
            id = "" if made in self._known else made
            number += 1
        self._known.add(id)
        self._unanswered.append(id)
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
            if id in self._unanswered:
                self._unanswered.remove(id)
            return id
        if not self._unanswered:
            problem = "no earlier call waits for a result; send the call's message before this one, or the call's id"
            raise invalid_field(f"{field}: {problem}", field)
        return self._unanswered.popleft()
