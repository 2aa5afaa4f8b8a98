"""One worker of a model: started when it is needed, and again when it has died or was ended because it hung."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from lmwire import AsyncSupervisor, AsyncWorker, StartFailed, WorkerHung, WorkerLost
from lmwire_protocol import events

from .status import ReplicaFigures

_AGAIN_S: Final = 5.0
"""Until a replica that the model does not fit into is tried again, while others serve."""
_log = logging.getLogger("lmwire_http")


class Replica:
    """A worker's keeper.

    Args:
        name: Of the model, for the log.
        make: Makes a worker that has not been started.
        load: Loads the model.
        fresh: Called when a worker has come up, which has nothing cached.
        step_limit_s: Without progress, after which a worker is ended; 0 for never.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], AsyncWorker],
        load: Callable[[AsyncWorker], Awaitable[events.ModelDone]],
        fresh: Callable[[], None],
        step_limit_s: float,
    ) -> None:
        self.in_flight = 0
        """Requests."""
        self.restarts = 0
        """Workers that came up in place of one that had died."""
        self._name, self._load, self._fresh = name, load, fresh
        self._supervisor = AsyncSupervisor(self._set_up, make=make, step_limit=step_limit_s or None)
        self._worker: AsyncWorker | None = None
        self._facts: events.ModelDone | None = None
        self._starting: asyncio.Task[None] | None = None
        self._counted_deaths = 0
        self._counted_hangs = 0
        self._died = False
        self._not_before = 0.0

    @property
    def worker(self) -> AsyncWorker | None:
        """The worker, if one lives that has the model."""
        return self._worker if self._worker and self._worker.lost is None else None

    @property
    def facts(self) -> events.ModelDone:
        """What it has loaded. Raises RuntimeError: nothing was ever loaded."""
        if self._facts is None:
            raise RuntimeError("nothing has been loaded yet")
        return self._facts

    @property
    def deaths(self) -> int:
        """Workers that ended, or did not come up, and were not told to."""
        return self._counted_deaths + (self._worker is not None and self._worker.lost is not None)

    @property
    def hangs(self) -> int:
        """Return how many of the deaths were workers that hung, and were ended."""
        return self._counted_hangs + (self._worker is not None and isinstance(self._worker.lost, WorkerHung))

    def start(self) -> "asyncio.Task[None]":
        """Starts a worker, unless one lives. All who ask while it starts get the same task.

        The task raises LmwireError. It goes on when who asked for it leaves.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return self._starting

    def revive(self) -> None:
        """Sees to it that a worker comes up, unless one lives, or could not load the model a moment ago."""
        if not self.worker and monotonic() >= self._not_before:
            self.start()

    @contextmanager
    def used(self) -> Iterator[None]:
        """A request is on the worker."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    def figures(self) -> ReplicaFigures:
        """What it looks like now."""
        pid = worker.pid if (worker := self.worker) else None
        return ReplicaFigures(
            pid=pid, in_flight=self.in_flight, restarts=self.restarts, deaths=self.deaths, hangs=self.hangs
        )

    async def close(self) -> None:
        """Ends the worker, also one that is starting, and returns when it is gone."""
        if starting := self._starting:
            starting.cancel()
            await asyncio.wait([starting])
        self._put_away()
        self._died = False
        await self._supervisor.close()

    async def _start(self) -> None:
        self._put_away()
        self._worker = await self._supervisor.worker()

    def _put_away(self) -> None:
        """Counts the worker if it has died. What comes of it from now on is no death."""
        if self._worker and self._worker.lost:
            self._count_death(self._worker.lost)
        self._worker = None

    def _count_death(self, death: BaseException) -> None:
        self._counted_deaths += 1
        self._counted_hangs += isinstance(death, WorkerHung)
        self._died = True
        _log.warning("a worker of %s has died: %s", self._name, death)

    async def _set_up(self, worker: AsyncWorker) -> None:
        self._facts = await self._load(worker)
        self.restarts += self._died
        self._died = False
        self._fresh()
        _log.info("worker %d has loaded %s", worker.pid, self._name)

    def _started(self, starting: "asyncio.Task[None]") -> None:
        self._starting = None
        if starting.cancelled() or (error := starting.exception()) is None:
            return
        if isinstance(error, StartFailed | WorkerLost):
            self._count_death(error)
        else:
            self._not_before = monotonic() + _AGAIN_S
            _log.warning("%s is not loaded: %s", self._name, error)
