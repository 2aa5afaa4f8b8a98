"""The memory that all models share: reservations, measurements, and which models to unload first."""

import asyncio
from typing import Generic, Protocol, TypeVar


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
        self._limit = limit
        self._reserved: dict[T, int] = {}
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int | None:
        """Bytes for all models together; None if only the workers decide."""
        return self._limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        self._limit = limit

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
        if self._limit is None:
            return None
        return max(1, self._limit - sum(size for other, size in self._reserved.items() if other is not holder))

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
        if self._limit is None:
            return False
        return need + sum(size for holder, size in self._reserved.items() if holder not in evicted) > self._limit
