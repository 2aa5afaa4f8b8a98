"""The queue of requests to start, in the order of fair queueing."""

from collections import deque
from collections.abc import Iterable

from ..engine.interface import InferenceCommand
from ..session.request_state import Request


class FairQueue(deque[Request]):
    """Requests to start: those that need few rows before those that need many.

    The order is by virtual finish time. If the waiting requests got rows one by one in turn, a request would have its
    last row in as many rounds as it has choices. So later requests overtake it only until then.
    https://en.wikipedia.org/wiki/Weighted_fair_queueing
    """

    def __init__(self) -> None:
        super().__init__()
        self._round = 0.0
        """Virtual time: rows that each waiting request would have by now."""

    def enqueue(self, requests: Iterable[Request]) -> None:
        """Insert requests by their virtual finish time."""
        for request in requests:
            request.finish_round = self._round + request.rows
            place = len(self)
            while place and _is_due_later(self[place - 1], request):
                place -= 1
            self.insert(place, request)

    def advance(self, rows: int) -> None:
        """Advance the virtual time, because a request that has left the queue gets its rows."""
        self._round += rows / (1 + len(self))


def _is_due_later(earlier: Request, later: Request) -> bool:
    """Return whether a later request starts first: both need rows, and it would finish in an earlier round.

    Args:
        earlier: The request that waits already.
        later: The new request.
    """
    both_run = isinstance(earlier.command, InferenceCommand) and isinstance(later.command, InferenceCommand)
    return both_run and not earlier.writer.is_serial and later.finish_round < earlier.finish_round
