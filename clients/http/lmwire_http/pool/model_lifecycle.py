"""How models come into memory and leave it: one load for all who ask, room first, and none for nobody."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from lmwire import RequestFailed

from ..errors import ApiError
from .managed_model import Resident
from .memory_budget import Room

_RETRY_S: Final = 5.0


class Doors:
    """Lets models in and out.

    Args:
        room: What they share.
        room_s: How long a model waits for those that are in use, in seconds.
    """

    def __init__(self, room: Room[Resident], room_s: float) -> None:
        self._room, self._room_s = room, room_s
        self._closed = False

    async def open(self, resident: Resident, *, wait: bool = True) -> None:
        """Returns when a request for the model can be served. Who calls is one of its users.

        Args:
            resident: The model.
            wait: For those that are in use, if there is no room otherwise.

        Raises:
            ApiError: there is no room for it.
            LmwireError: it cannot be loaded.
        """
        while not resident.up:
            if self._closed:
                raise ApiError(503, "the server is ending", code="draining")
            if resident.opening is None:
                resident.opening = asyncio.create_task(self._open(resident, wait=wait))
                resident.opening.add_done_callback(lambda opening: self._opened(resident, opening))
            await _joined(resident.opening)

    def end(self, resident: Resident) -> "asyncio.Task[None]":
        """Takes a model out of memory. The task ends when its processes have."""
        if resident.ending is None:
            resident.ending = asyncio.create_task(self._end(resident))
        return resident.ending

    async def measure(self) -> None:
        """Asks the workers what they have in memory."""
        up = [tenant for tenant in self._room.tenants if tenant.up and not tenant.opening]
        for tenant, held in zip(up, await asyncio.gather(*(tenant.held() for tenant in up)), strict=True):
            if held is not None:
                self._room.measured(tenant, held)

    async def trim(self, residents: Sequence[Resident]) -> set[Resident]:
        """Have models give up what they have cached, which is sooner computed again than a model is loaded.

        Returns:
            Those that have. The others have not answered in time, and their caches still count as theirs.
        """
        if not residents:
            return set()
        trimmed = await asyncio.gather(*(resident.clear() for resident in residents))
        await self.measure()
        return {resident for resident, done in zip(residents, trimmed, strict=True) if done}

    async def close(self, residents: Iterable[Resident]) -> None:
        """Ends all models at once, and lets none in any more."""
        self._closed = True
        tasks: set[asyncio.Task[None]] = set()
        for resident in residents:
            if resident.opening:
                resident.opening.cancel()
                tasks.add(resident.opening)
            tasks.add(self.end(resident))
        if tasks:
            await asyncio.wait(tasks)

    def _opened(self, resident: Resident, opening: "asyncio.Task[None]") -> None:
        resident.opened()
        self._room.changed()
        if not opening.cancelled():
            opening.exception()  # who waits hears of it; nobody need be there to

    async def _open(self, resident: Resident, *, wait: bool) -> None:
        if resident.ending:
            await asyncio.shield(resident.ending)
        crowded = False
        while True:
            try:
                if not resident.placed:
                    await self._make_room(resident, crowded=crowded, wait=wait)
                await resident.start()
                break
            except RequestFailed as error:
                await self._leave(resident)
                if error.code != "out_of_memory" or not self._room.tenants:
                    raise
                crowded = True  # there was less than it seemed
            except BaseException:
                await self._leave(resident)
                raise
        if self._room.budget is not None and (held := await resident.held()) is not None:
            self._room.measured(resident, held)

    async def _make_room(self, resident: Resident, *, crowded: bool, wait: bool) -> None:
        """Ends what must give way. When it returns, memory is free, and the newcomer's."""
        need = resident.target.size_bytes * len(resident.replicas)
        if self._room.budget is not None and need > self._room.budget:
            problem = f"{resident.target.id} takes {need:,} bytes, and all models together have {self._room.budget:,}"
            raise ApiError(400, problem, code="out_of_memory", param="model")
        try:
            async with asyncio.timeout(self._room_s):
                endings = await self._take_room(resident, need, crowded=crowded, wait=wait)
        except TimeoutError:
            raise self._no_room(resident) from None
        if endings:
            await asyncio.wait(endings)

    async def _take_room(
        self, resident: Resident, need: int, *, crowded: bool, wait: bool
    ) -> "list[asyncio.Task[None]]":
        """Gives the newcomer its place, and returns the endings of those whose it was."""
        while True:
            if self._room.budget is not None:
                await self.measure()
                await self.trim(self._room.leaving(need) or ())
            if not resident.users:
                raise asyncio.CancelledError  # nobody is left; who comes at this very moment begins anew
            if (leaving := self._room.take(resident, need, crowded=crowded)) is not None:
                resident.placed = True
                return [self.end(other) for other in leaving]
            if not wait:
                raise self._no_room(resident)
            await self._room.change()

    def _no_room(self, resident: Resident) -> ApiError:
        others = " and ".join(tenant.target.id for tenant in self._room.tenants)
        problem = f"there is no memory for {resident.target.id} beside {others}, in use now"
        return ApiError(503, problem, code="no_room", param="model", retry_after=_RETRY_S)

    async def _end(self, resident: Resident) -> None:
        if resident.opening:
            await asyncio.wait([resident.opening])
        await self._leave(resident)
        resident.ending = None

    async def _leave(self, resident: Resident) -> None:
        await resident.close()
        resident.placed = False
        self._room.leave(resident)


async def _joined(opening: "asyncio.Task[None]") -> None:
    """Waits for a load, which goes on for others when this client leaves; one that was given up is tried again."""
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if not opening.cancelled() or (current and current.cancelling()):
            raise
