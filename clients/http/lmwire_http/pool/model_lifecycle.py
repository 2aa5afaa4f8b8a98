"""When models are loaded and unloaded: one load for all waiting requests, within the memory budget and idle limits."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Final

from lmwire import RequestFailed

from ..errors import ApiError
from .managed_model import ManagedModel
from .memory_budget import DeviceGauge, MemoryBudget

_RETRY_S: Final = 5.0
_CLEAR_S: Final = 30.0
"""Time for an idle worker to clear its cache before its model is unloaded instead, in seconds.

A busy machine delays a healthy worker by seconds; only a hung one takes this long.
"""
_MEMORY_CHECK_S: Final = 5.0
"""Time between two measurements of the workers' memory, in seconds."""
_MIN_CHECK_S: Final = 0.01
_MAX_CHECK_S: Final = 3600.0


class ModelLifecycle:
    """Loader and unloader of models.

    Args:
        budget: The memory that all models share.
        memory_wait_s: Longest wait for memory that other models use, in seconds.
        gauge: Measures the device's free memory; None if the workers may run on another machine.
    """

    def __init__(
        self, budget: MemoryBudget[ManagedModel], memory_wait_s: float, gauge: DeviceGauge | None = None
    ) -> None:
        self._budget, self._memory_wait_s, self._gauge = budget, memory_wait_s, gauge
        self._closed = False

    async def ensure_loaded(self, model: ManagedModel, *, wait: bool = True) -> None:
        """Return when the model can serve a request. The caller must count as one of its users.

        Args:
            model: The model to load.
            wait: Whether to wait for models in use when unloading idle ones does not free enough memory.

        Raises:
            ApiError: There is not enough memory for the model.
            LmwireError: The model cannot be loaded.
        """
        while not model.is_serving:
            if self._closed:
                raise ApiError(503, "the server is stopping", code="draining")
            if model.load_task is None:
                model.load_task = asyncio.create_task(self._load(model, model.unload_task, wait=wait))
                model.load_task.add_done_callback(lambda load: self._load_finished(model, load))
            await _wait_for_load(model.load_task)

    def unload(self, model: ManagedModel) -> "asyncio.Task[None]":
        """Start to unload a model. The task ends when the model's processes have exited."""
        if model.unload_task is None:
            model.unload_task = asyncio.create_task(self._unload(model, model.load_task))
        return model.unload_task

    async def measure_memory(self) -> None:
        """Ask the workers how much memory they use, and record the answers in the budget."""
        models = [model for model in self._budget.holders if model.is_serving and not model.load_task]
        used = await asyncio.gather(*(model.memory_bytes() for model in models))
        for model, size in zip(models, used, strict=True):
            if size is not None:
                self._budget.set_measured(model, size)

    async def clear_caches(self, models: Sequence[ManagedModel], within_s: float | None = None) -> set[ManagedModel]:
        """Clear the caches of these models: a prompt is computed again sooner than a model is loaded.

        Args:
            models: The models.
            within_s: Time for each answer, in seconds. By default that of an idle worker on an idle machine.

        Returns:
            The models that have cleared their caches. The others did not answer in time, and their caches still count.
        """
        cleared = await asyncio.gather(*(self._clear_cache(model, within_s) for model in models))
        return {model for model, done in zip(models, cleared, strict=True) if done}

    async def _clear_cache(self, model: ManagedModel, within_s: float | None) -> bool:
        """Clear a model's caches and measure what remains. Return whether both were done in time."""
        if not await model.clear_cache(within_s):
            return False
        if (used := await model.memory_bytes(within_s)) is None:
            return not model.is_serving  # a worker that has died has no cache
        self._budget.set_measured(model, used)
        return True

    async def close(self, models: Iterable[ManagedModel]) -> None:
        """Unload all models at once and refuse further loads."""
        self._closed = True
        tasks: set[asyncio.Task[None]] = set()
        for model in models:
            if model.load_task:
                model.load_task.cancel()
                tasks.add(model.load_task)
            tasks.add(self.unload(model))
        if tasks:
            await asyncio.wait(tasks)

    def _load_finished(self, model: ManagedModel, load: "asyncio.Task[None]") -> None:
        model.load_finished()
        self._budget.notify()
        if not load.cancelled():
            load.exception()  # mark it as retrieved: perhaps no request waits for it any more

    # A load and an unload of a model each wait for the one that was there first. If they looked at the model when they
    # begin to run, two that are created in the same round of the event loop would wait for each other.

    async def _load(self, model: ManagedModel, previous: "asyncio.Task[None] | None", *, wait: bool) -> None:
        if previous:
            await asyncio.shield(previous)
        crowded = False
        while True:
            try:
                if not model.has_memory:
                    await self._reserve_memory(model, crowded=crowded, wait=wait)
                await model.start()
                break
            except RequestFailed as error:
                available = self._budget.available_to(model)
                await self._release(model)
                if error.code != "out_of_memory":
                    raise
                if not self._budget.holders:
                    model.load_need.record_final_refusal(error, monotonic())
                    raise
                if available is not None:
                    model.load_need.record_refusal(available // len(model.replicas))
                crowded = True  # the worker found less free memory than the budget shows
            except BaseException:
                await self._release(model)
                raise
        if self._budget.limit is not None and (used := await model.memory_bytes()) is not None:
            self._budget.set_measured(model, used)

    async def _reserve_memory(self, model: ManagedModel, *, crowded: bool, wait: bool) -> None:
        """Reserve memory for a model, and return when the models that it displaces have exited."""
        least = model.spec.min_load_bytes * len(model.replicas)
        if self._budget.limit is not None and least > self._budget.limit:
            problem = f"{model.spec.id} takes {least:,} bytes, and all models together have {self._budget.limit:,}"
            raise ApiError(507, problem, code="out_of_memory", param="model")
        model.load_need.check(monotonic())
        # The estimate may be too large. A worker with the whole budget decides.
        need = model.load_bytes if self._budget.limit is None else min(model.load_bytes, self._budget.limit)
        try:
            async with asyncio.timeout(self._memory_wait_s):
                evictions = await self._start_evictions(model, need, crowded=crowded, wait=wait)
        except TimeoutError:
            raise self._out_of_memory(model) from None
        if evictions:
            await asyncio.wait(evictions)
            if self._gauge and self._budget.limit is not None:
                await self._gauge.wait_until_free(need)

    async def _start_evictions(
        self, model: ManagedModel, need: int, *, crowded: bool, wait: bool
    ) -> "list[asyncio.Task[None]]":
        """Reserve memory for a model, and return the unload tasks of the models that it displaces."""
        while True:
            shortage = 0
            if self._budget.limit is not None:
                await self.measure_memory()
                await self.clear_caches(self._budget.evictable(need) or (), min(_CLEAR_S, self._memory_wait_s / 2))
                if self._gauge and self._budget.holders:
                    shortage = await self._gauge.shortage(need)
            if not model.users:
                raise asyncio.CancelledError  # no request waits any more; the next one starts a new load
            if (displaced := self._budget.reserve(model, need, crowded=crowded, shortage=shortage)) is not None:
                model.has_memory = True
                return [self.unload(other) for other in displaced]
            if not wait:
                raise self._out_of_memory(model)
            await self._budget.wait_for_change()

    def _out_of_memory(self, model: ManagedModel) -> ApiError:
        others = " and ".join(other.spec.id for other in self._budget.holders)
        problem = f"there is not enough memory for {model.spec.id} beside {others}, which are in use"
        return ApiError(503, problem, code="no_room", param="model", retry_after=_RETRY_S)

    async def _unload(self, model: ManagedModel, previous: "asyncio.Task[None] | None") -> None:
        if previous:
            await asyncio.wait([previous])
        await self._release(model)
        model.unload_task = None

    async def _release(self, model: ManagedModel) -> None:
        await model.close()
        model.has_memory = False
        self._budget.release(model)


async def _wait_for_load(load: "asyncio.Task[None]") -> None:
    """Wait for a load without cancelling it with this request. Return also when the load itself was cancelled."""
    try:
        await asyncio.shield(load)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if not load.cancelled() or (current and current.cancelling()):
            raise


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
