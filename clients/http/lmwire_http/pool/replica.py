"""One worker of a model, restarted after it has died or hung."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final

from lmwire import AsyncSupervisor, AsyncWorker, CircuitBreaker, StartFailed, WorkerHung, WorkerLost
from lmwire_protocol import events

from .status import ReplicaStatus

_LOAD_RETRY_S: Final = 5.0
"""Time before a replica whose load failed is tried again while others serve, in seconds."""
_log = logging.getLogger("lmwire_http")


class Replica:
    """A worker slot of a model.

    Args:
        name: The model's name, for the log.
        make: Returns a worker that has not been started.
        load: Loads the model into a worker.
        on_cache_lost: Called when a new worker, with an empty cache, has loaded the model.
        step_limit_s: End a worker after this time without progress, in seconds; never if 0.
        clock: Returns a monotonic time in seconds.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], AsyncWorker],
        load: Callable[[AsyncWorker], Awaitable[events.ModelDone]],
        on_cache_lost: Callable[[], None],
        step_limit_s: float,
        clock: Callable[[], float],
    ) -> None:
        self.in_flight = 0
        """Number of requests on the worker."""
        self.restarts = 0
        """Number of workers that replaced a dead one."""
        self._name, self._load, self._on_cache_lost = name, load, on_cache_lost
        self._clock = clock
        self._supervisor = AsyncSupervisor(
            self._set_up,
            make=make,
            circuit_breaker=CircuitBreaker(clock=clock),
            step_limit=step_limit_s or None,
        )
        self._worker: AsyncWorker | None = None
        self._loaded: events.ModelDone | None = None
        self._starting: asyncio.Task[None] | None = None
        self._counted_deaths = 0
        self._counted_hangs = 0
        self._died = False
        self._retry_at = 0.0

    @property
    def worker(self) -> AsyncWorker | None:
        """The running worker that has the model loaded; None if there is none."""
        return self._worker if self._worker and self._worker.lost is None else None

    @property
    def loaded(self) -> events.ModelDone:
        """The worker's description of the model.

        Raises:
            RuntimeError: No worker has loaded the model yet.
        """
        if self._loaded is None:
            raise RuntimeError("nothing has been loaded yet")
        return self._loaded

    @property
    def deaths(self) -> int:
        """Number of workers that exited, or failed to start, without a request to exit."""
        return self._counted_deaths + (self._worker is not None and self._worker.lost is not None)

    @property
    def hangs(self) -> int:
        """Number of the deaths that were workers without progress."""
        return self._counted_hangs + (self._worker is not None and isinstance(self._worker.lost, WorkerHung))

    def start(self) -> "asyncio.Task[None]":
        """Start a worker unless one runs, and return its start task. Callers during a start share that task.

        The task raises LmwireError. It continues when a caller is cancelled.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return self._starting

    def revive(self) -> None:
        """Start a worker in the background, unless one runs or a load has failed a moment ago."""
        if not self.worker and self._clock() >= self._retry_at:
            self.start()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Count a request on the worker while the block runs."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    def status(self) -> ReplicaStatus:
        """Return a snapshot of the replica."""
        pid = worker.pid if (worker := self.worker) else None
        return ReplicaStatus(
            pid=pid, in_flight=self.in_flight, restarts=self.restarts, deaths=self.deaths, hangs=self.hangs
        )

    async def close(self) -> None:
        """End the worker, also one that starts, and return when it has exited."""
        if starting := self._starting:
            starting.cancel()
            await asyncio.wait([starting])
        self._drop_worker()
        self._died = False
        await self._supervisor.close()

    async def _start(self) -> None:
        self._drop_worker()
        self._worker = await self._supervisor.worker()

    def _drop_worker(self) -> None:
        """Forget the worker, and count its death if it has died. Its later exit is not a death."""
        if self._worker and self._worker.lost:
            self._count_death(self._worker.lost)
        self._worker = None

    def _count_death(self, death: BaseException) -> None:
        self._counted_deaths += 1
        self._counted_hangs += isinstance(death, WorkerHung)
        self._died = True
        _log.warning("a worker of %s has died: %s", self._name, death)

    async def _set_up(self, worker: AsyncWorker) -> None:
        self._loaded = await self._load(worker)
        self.restarts += self._died
        self._died = False
        self._on_cache_lost()
        _log.info("worker %d has loaded %s", worker.pid, self._name)

    def _started(self, starting: "asyncio.Task[None]") -> None:
        self._starting = None
        if starting.cancelled() or (error := starting.exception()) is None:
            return
        if isinstance(error, StartFailed | WorkerLost):
            self._count_death(error)
        else:
            self._retry_at = self._clock() + _LOAD_RETRY_S
            _log.warning("%s is not loaded: %s", self._name, error)
