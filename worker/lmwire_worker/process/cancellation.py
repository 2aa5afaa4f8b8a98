"""The end of work that nobody waits for. A thread cannot be interrupted, but the process that it asks can be ended.

A thread works for one request at a time, which is its current cancellation's. Whatever asks another process meanwhile
names the action that ends it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final


class WorkCancelled(Exception):
    """Nobody waits for the work. It is raised in the thread that does it, and no host sees it."""


class Cancellation:
    """The state of one piece of work, and the action that ends it. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._action: Callable[[], object] | None = None
        self.is_set = False
        """True once nobody waits for the work."""

    def set(self) -> None:
        """Cancel the work, and end what it waits for."""
        with self._lock:
            self.is_set = True
            if self._action is not None:
                self._action()

    def check(self) -> None:
        """Raise WorkCancelled if the work was cancelled."""
        if self.is_set:
            raise WorkCancelled

    @contextmanager
    def ends_by(self, action: Callable[[], object]) -> Iterator[None]:
        """Let `set` call an action while the block runs, and not after it.

        Args:
            action: Ends what the block waits for, at once, from another thread.

        Raises:
            WorkCancelled: The work was cancelled before the block or in it.
        """
        with self._lock:
            self.check()
            self._action = action
        try:
            yield
        finally:
            with self._lock:
                self._action = None
            self.check()

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """Make this the cancellation of the present thread's work while the block runs."""
        before = current_cancellation()
        _current.work = self
        try:
            yield
        finally:
            _current.work = before


_current: Final = threading.local()
_NEVER: Final = Cancellation()


def current_cancellation() -> Cancellation:
    """Return the cancellation of the present thread's work; one that never happens if the thread has none."""
    return getattr(_current, "work", _NEVER)
