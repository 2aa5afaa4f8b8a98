"""Workers of several models, kept for whoever asks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from time import monotonic
from typing import TypeVar

from lmwire import AsyncWorker, LmwireError, LocalModel, RequestFailed, local_models
from lmwire_protocol import events

from ..errors import ApiError, api_error
from ..settings import Settings
from .idle_reaper import Keeper
from .managed_model import Resident
from .memory_budget import Room
from .model_lifecycle import Doors
from .model_resolver import Names
from .model_spec import Target
from .replica import Replica
from .status import Lease, ResidentFigures, ServedModel
from .worker_factory import make_worker

Told = TypeVar("Told")


class Pool:
    """The models that are served, and their workers.

    Args:
        settings: Which ones, and within what bounds.
        listing: Lists the models on this machine.
        clock: Seconds from any start.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        listing: Callable[..., Sequence[LocalModel]] = local_models,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings, self._clock = settings, clock
        self._names = Names(settings, listing, clock)
        self._room: Room[Resident] = Room(settings.memory_bytes)
        self._doors = Doors(self._room, settings.room_s)
        self._residents: dict[str, Resident] = {}
        self._keeper = Keeper(self._residents.values, self._doors, self._room, settings.idle_s, clock)
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Finds the models that are named, and loads them if that was asked for.

        Raises:
            ApiError: one is not here, cannot be loaded, or does not fit beside the others.
        """
        await self._names.start()
        if self._settings.preload:
            await self._preload()
        if self._settings.idle_s is not None or self._settings.memory_bytes is not None:
            self._keeping = asyncio.create_task(self._keeper.run())

    async def close(self) -> None:
        """Ends all workers at once, and returns when they are gone."""
        if self._keeping:
            self._keeping.cancel()
        self._names.close()
        await self._doors.close(list(self._residents.values()))

    @asynccontextmanager
    async def lease(
        self, model: str, *, prompt: Sequence[object] = (), client: Hashable = None, rows: int = 0
    ) -> AsyncIterator[Lease]:
        """A worker that has the model, which stays in memory for as long as the block lasts.

        Args:
            model: Its name, as the client gave it.
            prompt: What it is to read, in parts: prompts with the same first parts go to the same replica.
            client: Whose request it is. Clients are served in turn.
            rows: Answers that are asked for; with 0 the request does not queue.

        Raises:
            ApiError: there is no such model, or it cannot be had now.
        """
        resident = self._resident(await self._names.find(model))
        with self._used(resident):
            if rows:
                await self._open(resident)
            async with resident.turns.turn(client, rows) as turn:
                replica, worker = await self._replica(resident, prompt)
                resident.turns.let_through()
                with replica.used():
                    yield Lease(
                        worker, replica.facts, resident.target.id, turn.waited_s, partial(resident.turns.end, turn)
                    )

    async def models(self) -> list[ServedModel]:
        """All that can be asked for: those that are loaded first, and then by name.

        Raises:
            ApiError: they cannot be listed.
        """
        served = {target.id: self._served(target) for target in await self._names.all()}
        known = {model.loaded.path for model in served.values() if model.loaded}
        for id, resident in self._residents.items():
            if resident.model and resident.model.path not in known:  # fetched, or in a folder of its own
                served[id] = self._served(resident.target)
        return sorted(served.values(), key=lambda model: (model.loaded is None, model.id.lower()))

    async def model(self, name: str) -> ServedModel:
        """The one of that name. Raises ApiError: there is none."""
        return self._served(await self._names.find(name))

    def residents(self) -> list[ResidentFigures]:
        """The models that are, or were, in memory."""
        return [resident.figures() for resident in self._residents.values()]

    async def stats(self, timeout: float) -> dict[str, list[events.StatsDone | None]]:
        """What the workers of each model count; None for one that does not live, or does not answer in time."""
        return await self._ask(lambda worker: worker.stats(timeout=timeout))

    async def ping(self, timeout: float) -> dict[str, list[events.PingDone | None]]:
        """Whether the workers of each model make progress; None as in `stats`."""
        return await self._ask(lambda worker: worker.ping(timeout=timeout))

    async def _ask(self, question: Callable[[AsyncWorker], Awaitable[Told]]) -> dict[str, list[Told | None]]:
        residents = [resident for resident in self._residents.values() if resident.up]
        answers = await asyncio.gather(*(resident.ask(question) for resident in residents))
        return {resident.target.id: told for resident, told in zip(residents, answers, strict=True)}

    async def _preload(self) -> None:
        """Loads the models in turn. Each is used until the last one is there, so that none gives way to another."""
        with ExitStack() as all_used:
            for name in self._settings.models:
                resident = self._resident(await self._names.find(name))
                all_used.enter_context(self._used(resident))
                try:
                    await self._doors.open(resident, wait=False)
                except (LmwireError, ApiError) as error:
                    raise ApiError(503, f"{name} cannot be loaded: {error}", code="not_loaded") from error

    async def _replica(self, resident: Resident, prompt: Sequence[object]) -> tuple[Replica, AsyncWorker]:
        while True:
            await self._open(resident)
            if (replica := resident.choose(prompt)) and (worker := replica.worker):
                return replica, worker

    async def _open(self, resident: Resident) -> None:
        try:
            await self._doors.open(resident)
        except LmwireError as error:
            raise self._failure(resident, error) from error

    def _failure(self, resident: Resident, error: LmwireError) -> ApiError:
        """Why a model could not be loaded, for the client."""
        failure = api_error(error)
        if isinstance(error, RequestFailed):
            failure.param = "model"  # whatever is wrong with a load, that is what the client chose
        if failure.code == "model_not_found":  # what was listed is gone, or was never there
            self._names.forget()
            self._residents.pop(resident.target.id, None)
        return failure

    @contextmanager
    def _used(self, resident: Resident) -> Iterator[None]:
        try:
            with resident.used():
                yield
        finally:
            self._room.changed()

    def _resident(self, target: Target) -> Resident:
        return self._residents.get(target.id) or self._same(target) or self._add(target)

    def _same(self, target: Target) -> Resident | None:
        """The model that is in memory under another name: an alias is one until it has been fetched."""
        loaded = ((resident, resident.model) for resident in self._residents.values())
        return next((resident for resident, model in loaded if model and model.path == target.path), None)

    def _add(self, target: Target) -> Resident:
        self._residents[target.id] = Resident(
            target,
            self._settings.replicas,
            self._make,
            lambda worker: worker.load(target.path, **self._settings.load),
            queue=self._settings.queue,
            step_limit_s=self._settings.step_limit_s,
            clock=self._clock,
        )
        return self._residents[target.id]

    def _make(self, resident: Resident) -> AsyncWorker:
        left = self._room.left_to(resident)
        share = None if left is None else max(1, left // len(resident.replicas))
        return make_worker(self._settings, resident.target.id, share)

    def _served(self, target: Target) -> ServedModel:
        resident = self._residents.get(target.id) or self._same(target)
        loaded = resident.model if resident else None
        return ServedModel(
            id=target.id,
            path=target.path,
            size_bytes=target.size_bytes,
            context_len=loaded.context_len if loaded else target.context_len,
            loaded=loaded,
        )
