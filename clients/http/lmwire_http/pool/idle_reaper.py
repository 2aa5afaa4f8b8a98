"""Unload idle models, and models that no longer fit into the memory budget."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from .managed_model import ManagedModel
from .memory_budget import MemoryBudget
from .model_lifecycle import ModelLifecycle

_MEMORY_CHECK_S: Final = 5.0
"""Time between two measurements of the workers' memory, in seconds."""
_MIN_CHECK_S: Final = 0.01


class IdleReaper:
    """Task that checks the loaded models again and again.

    Args:
        models: Returns all models.
        lifecycle: Unloads models.
        budget: The memory that all models share.
        idle_s: Unload a model after this time without a request, in seconds; never if None.
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

    async def run(self) -> None:
        """Check the models repeatedly until cancelled."""
        while True:
            await asyncio.sleep(self.next_check_s())
            await self.reap()

    def next_check_s(self) -> float:
        """Return the time until the next check, in seconds."""
        pauses = [_MEMORY_CHECK_S] if self._budget.limit is not None else []
        if self._idle_s is not None:
            oldest = min((model.last_used for model in self._models() if model.is_idle), default=self._clock())
            pauses.append(max(_MIN_CHECK_S, oldest + self._idle_s - self._clock()))
        return min(pauses, default=3600.0)

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
        if self._idle_s is None:
            return []
        since = self._clock() - self._idle_s
        return [model for model in self._models() if model.is_idle and model.last_used <= since]
