"""A circuit breaker for worker starts: after several failures it forbids them for a while.

Source of the pattern: https://martinfowler.com/bliki/CircuitBreaker.html
"""

from collections import deque
from collections.abc import Callable
from time import monotonic

from .errors import LmwireError, WorkerUnavailable


class CircuitBreaker:
    """Allows or forbids the start of a worker.

    Each further failure within the window doubles the time that starts are forbidden.

    Args:
        limit: Number of failures that open the breaker.
        window: Time within which they must happen, in seconds.
        backoff: Time that starts are forbidden at first, in seconds.
        max_backoff: Longest time that starts are forbidden, in seconds.
        clock: Returns the time in seconds, from any start.
    """

    def __init__(
        self,
        *,
        limit: int = 3,
        window: float = 60.0,
        backoff: float = 5.0,
        max_backoff: float = 300.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._window, self._backoff, self._max_backoff, self._clock = window, backoff, max_backoff, clock
        self._failures: deque[float] = deque(maxlen=limit)
        self._current_backoff = 0.0
        self._last_failure: LmwireError | None = None

    def record_failure(self, failure: LmwireError) -> None:
        """Record that a worker has died or failed to start."""
        self._last_failure = failure
        self._failures.append(self._clock())
        full = len(self._failures) == self._failures.maxlen
        if full and self._failures[-1] - self._failures[0] <= self._window:
            self._current_backoff = min(max(self._backoff, 2 * self._current_backoff), self._max_backoff)
        else:
            self._current_backoff = 0.0

    def check(self) -> None:
        """Raise an error if a start is forbidden.

        Raises:
            WorkerUnavailable: Starts are forbidden for now. Its cause is the last failure.
        """
        if not self._current_backoff:
            return
        retry_after = self._failures[-1] + self._current_backoff - self._clock()
        if retry_after > 0:
            raise WorkerUnavailable(len(self._failures), retry_after) from self._last_failure
