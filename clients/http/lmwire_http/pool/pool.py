"""PLACEHOLDER replaced by the pool's author: one worker a model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lmwire import AsyncSupervisor, AsyncWorker
from lmwire_protocol import events

from ..settings import Settings


@dataclass(frozen=True, slots=True)
class Lease:
    worker: AsyncWorker
    model: events.ModelDone


class Pool:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._supervisors: dict[str, AsyncSupervisor] = {}
        self._models: dict[str, events.ModelDone] = {}

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        for supervisor in self._supervisors.values():
            await supervisor.close()

    @asynccontextmanager
    async def lease(self, model: str, *, prompt: Sequence[object] = ()) -> AsyncIterator[Lease]:
        async def setup(worker: AsyncWorker) -> None:
            self._models[model] = await worker.load(model)

        supervisor = self._supervisors.setdefault(
            model,
            AsyncSupervisor(
                setup,
                make=lambda: AsyncWorker(self._settings.command and [*self._settings.command, *self._settings.worker]),
            ),
        )
        worker = await supervisor.worker()
        yield Lease(worker, self._models[model])
