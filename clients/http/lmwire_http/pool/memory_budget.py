"""The memory that the models share: who has how much of it, and who gives way to whom."""

import asyncio
from typing import Generic, Protocol, TypeVar


class Tenant(Protocol):
    """A model that has, or wants, memory."""

    @property
    def idle(self) -> bool:
        """Whether it is loaded, and nobody uses it or waits for it."""
        ...

    @property
    def last_used(self) -> float:
        """When somebody left it last."""
        ...


T = TypeVar("T", bound=Tenant)


class Room(Generic[T]):
    """A budget, and the tenants that share it.

    Args:
        budget: Bytes; None when only the workers can tell that there is no more.
    """

    def __init__(self, budget: int | None) -> None:
        self._budget = budget
        self._held: dict[T, int] = {}
        self._news = asyncio.Event()

    @property
    def budget(self) -> int | None:
        """All that there is, in bytes."""
        return self._budget

    def leaving(self, need: int, *, crowded: bool = False) -> list[T] | None:
        """Who would have to go for a newcomer, those that were not used for longest first.

        Args:
            need: Of the newcomer, in bytes.
            crowded: At least one must go, since a worker has found less than there seems to be.

        Returns:
            They are idle. None when they would not be enough, because the others are in use.
        """
        leaving: list[T] = []
        idle = self._idle()
        while self._lacks(need, leaving) or (crowded and not leaving):
            if not idle:
                return None
            leaving.append(idle.pop(0))
        return leaving

    def take(self, newcomer: T, need: int, *, crowded: bool = False) -> list[T] | None:
        """Gives a newcomer memory, unless `leaving` is None, which it returns. They must be ended before it is used."""
        leaving = self.leaving(need, crowded=crowded)
        if leaving is not None:
            self._held[newcomer] = need
        return leaving

    def surplus(self) -> list[T]:
        """The idle tenants that must be ended for the others to be within the budget.

        A last one is not: its worker sees to that, up to the memory that a step needs for a moment.
        """
        leaving: list[T] = []
        idle = self._idle()
        while idle and len(leaving) + 1 < len(self._held) and self._lacks(0, leaving):
            leaving.append(idle.pop(0))
        return leaving

    def measured(self, tenant: T, held: int) -> None:
        """What a tenant has in truth, in bytes."""
        if tenant in self._held:
            self._held[tenant] = held

    def left_to(self, tenant: T) -> int | None:
        """What the others leave to a tenant, in bytes: 1 at least; None without a budget."""
        if self._budget is None:
            return None
        return max(1, self._budget - sum(held for other, held in self._held.items() if other is not tenant))

    @property
    def tenants(self) -> list[T]:
        """Who has memory."""
        return list(self._held)

    def leave(self, tenant: T) -> None:
        """A tenant has ended, and its memory is back."""
        self._held.pop(tenant, None)
        self.changed()

    def changed(self) -> None:
        """A tenant has become idle, or has gone."""
        self._news.set()

    async def change(self) -> None:
        """Waits until a tenant becomes idle, or goes."""
        self._news.clear()
        await self._news.wait()

    def _idle(self) -> list[T]:
        return sorted((tenant for tenant in self._held if tenant.idle), key=lambda tenant: tenant.last_used)

    def _lacks(self, need: int, leaving: list[T]) -> bool:
        if self._budget is None:
            return False
        return need + sum(held for tenant, held in self._held.items() if tenant not in leaving) > self._budget
