"""The pool's start in the background. The server already answers health checks, and requests for models wait."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from ..errors import ApiError


class Startup:
    """The task that finds the configured models and preloads them."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, start: Coroutine[Any, Any, None]) -> None:
        """Start the task without waiting for it."""
        self._task = asyncio.create_task(start)

    async def stop(self) -> None:
        """Cancel the task, and return when it has ended."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def is_done(self) -> bool:
        """Return whether the start has succeeded."""
        return self._task is not None and self._task.done() and self.failure is None

    @property
    def failure(self) -> BaseException | None:
        """Why the server cannot serve; None while it starts or after it has started."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def wait(self) -> None:
        """Return when the start has succeeded.

        Raises:
            ApiError: The start has failed.
        """
        if self._task and not self._task.done():
            await asyncio.wait([self._task])
        if not self.is_done:
            raise ApiError(503, "the server could not start; see its log", code="server_ending", retry_after=5)
