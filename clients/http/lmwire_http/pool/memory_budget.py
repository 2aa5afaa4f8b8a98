"""The memory that all models share: what a load needs, what the device has free, and which models go first."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from lmwire import DeviceMemory, LmwireError, RequestFailed
from lmwire_protocol import events

from .model_resolver import ModelSpec

_RELEASE_S: Final = 10.0
"""Longest wait for the memory of workers that have exited, in seconds. macOS frees a GPU's memory a while later."""
_POLL_S: Final = 0.25
_log = logging.getLogger("lmwire_http")
_ANSWER_TOKENS: Final = 1024
"""Tokens of a short answer, for which a worker requires memory besides the weights."""
_ELEMENT_BYTES: Final = 2
_REFUSAL_TTL_S: Final = 10.0
"""Time for which a refused load is not tried again, in seconds. Other programs may free memory meanwhile."""


class MemoryHolder(Protocol):
    """A model that has memory or needs it."""

    @property
    def is_idle(self) -> bool:
        """Return whether the model is loaded without users."""
        ...

    @property
    def is_unloading(self) -> bool:
        """Return whether the model's memory is free soon without further action."""
        ...

    @property
    def last_used(self) -> float:
        """Time of the last use, in seconds."""
        ...


T = TypeVar("T", bound=MemoryHolder)


class MemoryBudget(Generic[T]):
    """A limit, and the models that share it.

    Args:
        limit: Bytes for all models together; None if only the workers decide.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        """Bytes for all models together; None if only the workers decide."""
        self._reserved: dict[T, int] = {}
        self._changed = asyncio.Event()

    def evictable(self, need: int, *, crowded: bool = False, shortage: int = 0) -> list[T] | None:
        """Return the models to unload for a new one: those that are being unloaded, then the least recently used.

        Args:
            need: Memory of the new model, in bytes.
            crowded: Whether at least one model must go, because a worker found less free memory than the budget shows.
            shortage: Bytes that the models must free if they can, because the device has less than the need.

        Returns:
            Models that are idle or being unloaded; None if they would not free enough, because the others are in use.
        """
        evicted: list[T] = []
        candidates = self._candidates()
        while self._exceeds(need, evicted) or (crowded and not evicted):
            if not candidates:
                return None
            evicted.append(candidates.pop(0))
        while candidates and self._size(evicted) < shortage:
            evicted.append(candidates.pop(0))
        return evicted

    def reserve(self, newcomer: T, need: int, *, crowded: bool = False, shortage: int = 0) -> list[T] | None:
        """Reserve memory for a new model, and return the models to unload before it is loaded.

        Args:
            newcomer: The new model.
            need: Its memory, in bytes.
            crowded: As in `evictable`.
            shortage: As in `evictable`.

        Returns:
            The result of `evictable`. Nothing is reserved if that is None.
        """
        evicted = self.evictable(need, crowded=crowded, shortage=shortage)
        if evicted is not None:
            self._reserved[newcomer] = need
        return evicted

    def surplus(self) -> list[T]:
        """Return the models to unload so that the others fit into the limit, in the order of `evictable`.

        The last model stays: its worker keeps to the limit, except for the memory that a single step needs.
        """
        evicted: list[T] = []
        candidates = self._candidates()
        while candidates and len(evicted) + 1 < len(self._reserved) and self._exceeds(0, evicted):
            evicted.append(candidates.pop(0))
        return evicted

    def set_measured(self, holder: T, size: int) -> None:
        """Replace a reservation by the measured memory.

        Args:
            holder: The model. It is ignored if it has no reservation.
            size: Its memory, in bytes.
        """
        if holder in self._reserved:
            self._reserved[holder] = size

    def available_to(self, holder: T) -> int | None:
        """Return the bytes that the other models leave to one, at least 1; None without a limit."""
        if self.limit is None:
            return None
        return max(1, self.limit - sum(size for other, size in self._reserved.items() if other is not holder))

    @property
    def holders(self) -> list[T]:
        """The models with reserved memory."""
        return list(self._reserved)

    def release(self, holder: T) -> None:
        """Free the memory of a model that was unloaded."""
        self._reserved.pop(holder, None)
        self.notify()

    def notify(self) -> None:
        """Wake the waiting models: a model has become idle or was unloaded."""
        self._changed.set()

    async def wait_for_change(self) -> None:
        """Wait until a model becomes idle or is unloaded."""
        self._changed.clear()
        await self._changed.wait()

    def _candidates(self) -> list[T]:
        """Return the models that can be unloaded. One that is being unloaded goes first, and may spare an idle one."""
        candidates = (holder for holder in self._reserved if holder.is_idle or holder.is_unloading)
        return sorted(candidates, key=lambda holder: (not holder.is_unloading, holder.last_used))

    def _size(self, holders: list[T]) -> int:
        return sum(self._reserved[holder] for holder in holders)

    def _exceeds(self, need: int, evicted: list[T]) -> bool:
        if self.limit is None:
            return False
        return need + sum(size for holder, size in self._reserved.items() if holder not in evicted) > self.limit


class DeviceGauge:
    """Measures the device's memory in a process of its own.

    Args:
        measure: Returns the memory. It is called in a thread.
    """

    def __init__(self, measure: Callable[[], DeviceMemory]) -> None:
        self._measure = measure

    async def read(self) -> DeviceMemory | None:
        """Return the device's memory; None if it cannot be measured."""
        try:
            return await asyncio.to_thread(self._measure)
        except LmwireError as error:
            _log.warning("%s", error)
            return None

    async def shortage(self, need: int) -> int:
        """Return the bytes that are missing for a need, in bytes; 0 if nothing is missing or that is unknown."""
        memory = await self.read()
        return max(0, need - memory.free_bytes) if memory else 0

    async def wait_until_free(self, need: int) -> None:
        """Return when the device has the memory, or after some seconds: the worker then decides.

        Args:
            need: Memory in bytes.
        """
        try:
            async with asyncio.timeout(_RELEASE_S):
                while await self.shortage(need):
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            _log.warning("the memory of unloaded models is not free after %.0f s", _RELEASE_S)


class LoadNeed:
    """The memory that each worker of a model needs for a load.

    The listing of models estimates it. A model that is not listed is known after its first load. A refusal of a worker
    corrects both.
    """

    def __init__(self) -> None:
        self._described = 0
        self._refused = 0
        self._refusal: tuple[RequestFailed, float] | None = None

    def bytes(self, spec: ModelSpec) -> int:
        """Return the memory for one worker, in bytes; 0 if it is unknown."""
        return max(spec.load_bytes or spec.size_bytes or self._described, self._refused)

    def record_loaded(self, model: events.ModelDone) -> None:
        """Learn from a worker's description of the model."""
        answer = _ELEMENT_BYTES * 2 * model.layers * model.hidden_size * _ANSWER_TOKENS
        self._described = model.weights_bytes + answer
        self._refusal = None

    def record_refusal(self, available: int) -> None:
        """Learn that a worker refused to load the model.

        Args:
            available: The memory that the worker had, in bytes.
        """
        self._refused = max(self._refused, available + 1)

    def record_final_refusal(self, error: RequestFailed, now: float) -> None:
        """Remember that a worker refused the load although it had all memory.

        Args:
            error: The worker's error.
            now: A monotonic time in seconds.
        """
        self._refusal = (error, now)

    def check(self, now: float) -> None:
        """Raise the worker's last error again if a new worker would have to fail, too.

        Args:
            now: A monotonic time in seconds.

        Raises:
            RequestFailed: A worker has refused the load a moment ago.
        """
        if self._refusal and now - self._refusal[1] < _REFUSAL_TTL_S:
            raise self._refusal[0].with_traceback(None)
