"""The pool's start, beside which the server already tells of its health. Requests for models wait for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from ..errors import ApiError


class Startup:
    """Whether the models that were named have been found, and those to preload are there."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, start: Coroutine[Any, Any, None]) -> None:
        """Starts, and does not wait."""
        self._task = asyncio.create_task(start)

    async def stop(self) -> None:
        """Gives up what has not started yet, and returns when nothing of it runs."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def over(self) -> bool:
        """Whether it has succeeded."""
        return self._task is not None and self._task.done() and self.failure is None

    @property
    def failure(self) -> BaseException | None:
        """Why the server cannot serve; None while it can, or may yet."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def wait(self) -> None:
        """Returns when it has succeeded.

        Raises:
            ApiError: it has not.
        """
        if self._task and not self._task.done():
            await asyncio.wait([self._task])
        if not self.over:
            raise ApiError(503, "the server could not start; its log says why", code="server_ending", retry_after=5)
