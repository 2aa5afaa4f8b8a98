"""A reader of a worker's output in the event loop of the tasks that use it, so that no token wakes two threads."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import monotonic

from .connection import Delivery, ResponseQueue, deliver_all


class EventLoopReader:
    """The running event loop, as an `OutputReader`. A busy loop reads later: the worker waits, and nothing is lost."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._pipe: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, pipe: int, read: Callable[[], float | None]) -> None:
        """Start to read; see `OutputReader.start`. Called on the loop's own thread.

        Args:
            pipe: The descriptor of the pipe.
            read: Reads from it, and returns when to read again.
        """
        self._pipe = os.dup(pipe)  # stays open until the loop no longer watches it
        self._read = read
        self._loop.add_reader(self._pipe, self._ready)

    def stop(self) -> None:
        """Stop to read; see `OutputReader.stop`."""
        try:
            self._loop.call_soon_threadsafe(self._release)
        except RuntimeError:  # the loop is closed, and watches nothing
            self._close()

    def deliver(self, deliveries: list[tuple[ResponseQueue, Delivery]]) -> None:
        """Put each delivery into its queue, on the loop's thread. May be called on any thread."""
        if threading.get_ident() == self._thread:
            deliver_all(deliveries)
            return
        with suppress(RuntimeError):  # the loop is closed, so no task waits
            self._loop.call_soon_threadsafe(deliver_all, deliveries)

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
