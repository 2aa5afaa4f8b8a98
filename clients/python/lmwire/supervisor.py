"""Supervisors: they start a new worker after one has died or hung, within limits.

The new worker starts when one is asked for, not when the old one dies. So a model that kills its worker is not loaded
again and again while no caller waits. Requests of a dead worker fail with WorkerLost and are not repeated: only the
caller knows whether it has used half an answer.

A worker that makes no progress while requests wait for it is killed; see `watchdog`. Its requests fail with WorkerHung.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final, Self

from .asyncio_worker import AsyncWorker
from .circuit_breaker import CircuitBreaker
from .errors import StartFailed, WorkerLost
from .watchdog import WatchdogThread, run_watchdog
from .worker import Worker

STEP_LIMIT_S: Final = 300.0
"""Default of `step_limit`. A step takes less than a second, or a few on a slow machine: this is far longer."""


class Supervisor:
    """Keeps a worker for threads.

    Args:
        setup: Prepares a started worker for requests, for example `lambda worker: worker.load(path)`.
        make: Makes a worker that is not started.
        circuit_breaker: Forbids starts after several failures.
        step_limit: Time without progress after which a worker counts as hung, in seconds, while a request waits. A load
            that reports progress makes progress. None means no limit.
    """

    def __init__(
        self,
        setup: Callable[[Worker], object],
        *,
        make: Callable[[], Worker] = Worker,
        circuit_breaker: CircuitBreaker | None = None,
        step_limit: float | None = STEP_LIMIT_S,
    ) -> None:
        self._setup, self._make, self._circuit_breaker = setup, make, circuit_breaker or CircuitBreaker()
        self._step_limit = step_limit
        self._watchdog: WatchdogThread | None = None
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def worker(self) -> Worker:
        """Return the worker. If none is alive, start and set up a new one first.

        Raises:
            WorkerUnavailable: Too many workers have failed, and no start was tried.
            LmwireError: The start or the setup failed.
        """
        with self._lock:
            if self._worker and self._worker.lost:
                self._circuit_breaker.record_failure(self._worker.lost)
                self._end(self._worker)
                self._worker = None
            if self._worker is None:
                self._circuit_breaker.check()
                self._worker = self._start()
            return self._worker

    def close(self) -> None:
        """End the worker, and return when its process is gone."""
        with self._lock:
            if self._worker:
                self._end(self._worker)
            self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> Worker:
        worker = self._make()
        try:
            worker.start()
            if self._step_limit:
                self._watchdog = WatchdogThread(worker, self._step_limit)
            self._setup(worker)
        except BaseException as error:
            if isinstance(error, StartFailed | WorkerLost):
                self._circuit_breaker.record_failure(error)
            self._end(worker)
            raise
        return worker

    def _end(self, worker: Worker) -> None:
        if self._watchdog:
            self._watchdog.stop()
        worker.close()
        if self._watchdog:
            self._watchdog.join()
            self._watchdog = None


class AsyncSupervisor:
    """Keeps a worker for asyncio tasks. The arguments are those of `Supervisor`, with a `setup` to await."""

    def __init__(
        self,
        setup: Callable[[AsyncWorker], Awaitable[object]],
        *,
        make: Callable[[], AsyncWorker] = AsyncWorker,
        circuit_breaker: CircuitBreaker | None = None,
        step_limit: float | None = STEP_LIMIT_S,
    ) -> None:
        self._setup, self._make, self._circuit_breaker = setup, make, circuit_breaker or CircuitBreaker()
        self._step_limit = step_limit
        self._watchdog: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._worker: AsyncWorker | None = None

    async def worker(self) -> AsyncWorker:
        """See `Supervisor.worker`."""
        async with self._lock:
            if self._worker and self._worker.lost:
                self._circuit_breaker.record_failure(self._worker.lost)
                await self._end(self._worker)
                self._worker = None
            if self._worker is None:
                self._circuit_breaker.check()
                self._worker = await self._start()
            return self._worker

    async def close(self) -> None:
        """See `Supervisor.close`."""
        async with self._lock:
            if self._worker:
                await self._end(self._worker)
            self._worker = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _start(self) -> AsyncWorker:
        worker = self._make()
        try:
            await worker.start()
            if self._step_limit:
                self._watchdog = asyncio.create_task(run_watchdog(worker, self._step_limit))
            await self._setup(worker)
        except BaseException as error:
            if isinstance(error, StartFailed | WorkerLost):
                self._circuit_breaker.record_failure(error)
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: AsyncWorker) -> None:
        if self._watchdog:
            self._watchdog.cancel()
            self._watchdog = None
        await worker.close()
