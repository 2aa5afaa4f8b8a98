"""Unload idle models, and models that no longer fit into the memory budget."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from typing import Final

from .managed_model import ManagedModel
from .memory_budget import MemoryBudget
from .model_lifecycle import ModelLifecycle

_MEMORY_CHECK_S: Final = 5.0
"""Time between two measurements of the workers' memory, in seconds."""
_MIN_CHECK_S: Final = 0.01
_MAX_CHECK_S: Final = 3600.0


class IdleReaper:
    """Task that checks the loaded models again and again.

    Args:
        models: Returns all models.
        lifecycle: Unloads models.
        budget: The memory that all models share.
        idle_s: Unload a model after this time without a request, in seconds, unless clients have set another; never if
            None.
        clock: Returns a monotonic time in seconds.
    """

    def __init__(
        self,
        models: Callable[[], Iterable[ManagedModel]],
        lifecycle: ModelLifecycle,
        budget: MemoryBudget[ManagedModel],
        idle_s: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._models, self._lifecycle, self._budget = models, lifecycle, budget
        self._idle_s, self._clock = idle_s, clock
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Check the models repeatedly until cancelled."""
        while True:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.next_check_s()):
                    await self._changed.wait()
            await self.reap()

    def notify(self) -> None:
        """Check the models soon: a time limit has changed."""
        self._changed.set()

    def next_check_s(self) -> float:
        """Return the time until the next check, in seconds."""
        pauses = [_MEMORY_CHECK_S] if self._budget.limit is not None else []
        if self._idle_s is not None:
            pauses.append(self._idle_s)
        pauses += [left for model in self._models() if (left := self.remaining_s(model)) is not None and model.is_idle]
        return max(_MIN_CHECK_S, min(pauses, default=_MAX_CHECK_S))

    def remaining_s(self, model: ManagedModel) -> float | None:
        """Return the time until a model is unloaded if no request comes, in seconds; None if it stays."""
        limit = self._idle_s if model.idle_s is None else model.idle_s
        if limit is None or limit == inf:
            return None
        return limit + (0 if model.users else model.last_used - self._clock())

    async def reap(self) -> None:
        """Unload the models that are idle for too long or over the budget, and return when they have exited.

        A model over the budget is unloaded only after it has cleared its cache. A busy worker may answer slowly.
        """
        cleared: set[ManagedModel] = set()
        if self._budget.limit is not None:
            await self._lifecycle.measure_memory()
            cleared = await self._lifecycle.clear_caches(self._budget.surplus())
        unloaded = {*self._expired(), *cleared.intersection(self._budget.surplus())}
        if unloaded:
            await asyncio.wait([self._lifecycle.unload(model) for model in unloaded])

    def _expired(self) -> list[ManagedModel]:
        idle = (model for model in self._models() if model.is_idle)
        return [model for model in idle if (left := self.remaining_s(model)) is not None and left <= 0]
