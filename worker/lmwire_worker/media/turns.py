"""Memory that is handed out in turn: to small work soon, and to large work in the end."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, Generic, TypeVar

T = TypeVar("T")

SMALL_SHARE: Final = 8
"""Divisor of the memory for the part that small work alone may take."""
LARGE_BYTES: Final = 64 * 2**20
"""Result above which work is large, in bytes: an image of 16 megapixels, or 17 minutes of sound at 16 kHz."""


@dataclass(frozen=True, slots=True)
class Grant(Generic[T]):
    """Work whose turn has come, with its memory."""

    item: T
    size: int
    """Its memory, in bytes."""
    is_large: bool


class Turns(Generic[T]):
    """Work that waits for memory, in the order of fair queueing: by virtual finish time.

    Virtual time is the bytes of results that each request would have by now if they took turns. Large work leaves a
    share of the memory to small work. Small work that overtakes large work takes no more than this share, so the memory
    that the large work waits for becomes free. https://en.wikipedia.org/wiki/Weighted_fair_queueing

    Args:
        limit: The memory, in bytes.
        is_dropped: Returns whether nobody needs the result of an item any more.
    """

    def __init__(self, limit: int, is_dropped: Callable[[T], bool]) -> None:
        self._limit = limit
        self._is_dropped = is_dropped
        self._used = {False: 0, True: 0}
        """Bytes that small work and large work have now."""
        self._waiting: dict[bool, list[tuple[float, int, int, T]]] = {False: [], True: []}
        """Small and large work: its finish time, a number that breaks ties, its memory, and itself."""
        self._numbers = count()
        self._now = 0.0
        """Virtual time."""

    @property
    def used(self) -> int:
        """Bytes that all work has now."""
        return sum(self._used.values())

    @property
    def largest(self) -> int:
        """The most bytes that one item may need."""
        return self._limit - self._limit // SMALL_SHARE

    def enter(self, item: T, need: int, cost: int, after: float = 0.0) -> float:
        """Let an item wait, and return its virtual finish time.

        Args:
            item: The item.
            need: Its memory, in bytes; at most `largest`.
            cost: Bytes of its result.
            after: Finish time of its request's item before it.
        """
        finish = max(self._now, after) + cost
        is_large = cost > LARGE_BYTES or need > self._limit // SMALL_SHARE
        heapq.heappush(self._waiting[is_large], (finish, next(self._numbers), need, item))
        return finish

    def next(self, *, large_too: bool = True) -> Grant[T] | None:
        """Return the next item if its memory is free.

        Args:
            large_too: Whether large work may start.
        """
        small, large = self._head(False), self._head(True)
        is_overtaken = large is not None and (small is None or large < small)
        if is_overtaken and large_too and large is not None and self._fits(large[2]):
            return self._take(True)
        if small is None:
            return None
        if is_overtaken and self._used[False] + small[2] > self._limit - self.largest:
            return None
        return self._take(False) if self.used + small[2] <= self._limit else None

    def give(self, size: int, *, is_large: bool) -> None:
        """Return memory.

        Args:
            size: Its bytes.
            is_large: Whether large work had it.
        """
        self._used[is_large] -= size

    def _fits(self, need: int) -> bool:
        """Return whether the memory of large work is free."""
        return self._used[True] + need <= self.largest and self.used + need <= self._limit

    def _head(self, is_large: bool) -> tuple[float, int, int, T] | None:
        waiting = self._waiting[is_large]
        while waiting and self._is_dropped(waiting[0][3]):
            heapq.heappop(waiting)
        return waiting[0] if waiting else None

    def _take(self, is_large: bool) -> Grant[T]:
        finish, _, need, item = heapq.heappop(self._waiting[is_large])
        self._now = max(self._now, finish)
        self._used[is_large] += need
        return Grant(item, need, is_large)
