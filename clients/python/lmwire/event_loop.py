"""Where a worker's output is read for tasks: in their own event loop, so that no token wakes two threads."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import monotonic

from .connection import Delivery, Mailbox, put


class EventLoop:
    """The running loop, as a `Reader` of output. A loop that is busy reads later; the worker waits before it loses."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._pipe: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, pipe: int, read: Callable[[], float | None]) -> None:
        """See `Reader`. In the loop's own thread."""
        self._pipe = os.dup(pipe)  # which is closed only once the loop has let go of it
        self._read = read
        self._loop.add_reader(self._pipe, self._ready)

    def stop(self) -> None:
        """See `Reader`."""
        try:
            self._loop.call_soon_threadsafe(self._release)
        except RuntimeError:  # the loop is closed, and watches nothing
            self._close()

    def deliver(self, deliveries: list[tuple[Mailbox, Delivery]]) -> None:
        """Puts what came into its mailboxes, in the loop. From any thread."""
        if threading.get_ident() == self._thread:
            put(deliveries)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(put, deliveries)

    def _ready(self) -> None:
        due_at = self._read()
        if self._pipe is None:
            return
        if due_at is None:
            self._loop.remove_reader(self._pipe)
        elif due_at != inf and self._timer is None:
            self._timer = self._loop.call_later(due_at - monotonic(), self._due)

    def _due(self) -> None:
        self._timer = None
        if self._pipe is not None:
            self._ready()

    def _release(self) -> None:
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            self._close()

    def _close(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)
