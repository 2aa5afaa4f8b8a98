"""Ends models that nobody has used for long, and those that the others have outgrown."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from .managed_model import Resident
from .memory_budget import Room
from .model_lifecycle import Doors

_LOOK_S: Final = 5.0
"""How often the workers are asked how much they have."""
_LEAST_S: Final = 0.01


class Keeper:
    """Looks after the models between requests.

    Args:
        residents: All models.
        doors: Where they leave.
        room: What they share.
        idle_s: After so long without a request a model ends, in seconds; None for never.
        clock: Seconds from any start, as `Resident.last_used`.
    """

    def __init__(
        self,
        residents: Callable[[], Iterable[Resident]],
        doors: Doors,
        room: Room[Resident],
        idle_s: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._residents, self._doors, self._room = residents, doors, room
        self._idle_s, self._clock = idle_s, clock

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(self.pause())
            await self.look()

    def pause(self) -> float:
        """Seconds until there may be something to do."""
        pauses = [_LOOK_S] if self._room.budget is not None else []
        if self._idle_s is not None:
            oldest = min((tenant.last_used for tenant in self._residents() if tenant.idle), default=self._clock())
            pauses.append(max(_LEAST_S, oldest + self._idle_s - self._clock()))
        return min(pauses, default=3600.0)

    async def look(self) -> None:
        """End what is to end now, and return when it has.

        A model that has not given up its cache yet is not ended for it: its worker may only be slow to answer.
        """
        trimmed: set[Resident] = set()
        if self._room.budget is not None:
            await self._doors.measure()
            trimmed = await self._doors.trim(self._room.surplus())
        leaving = {*self._idle_for_long(), *trimmed.intersection(self._room.surplus())}
        if leaving:
            await asyncio.wait([self._doors.end(resident) for resident in leaving])

    def _idle_for_long(self) -> list[Resident]:
        if self._idle_s is None:
            return []
        since = self._clock() - self._idle_s
        return [resident for resident in self._residents() if resident.idle and resident.last_used <= since]
