"""Supervisors: a worker that is started again when it has died or hangs, but not for ever.

They start the next worker when one is asked for, not when the last one dies: so a model that kills its worker is not
loaded again and again with nobody waiting. Requests of a dead worker fail with WorkerLost and are not sent again, since
only the caller knows whether half an answer has been used.

A worker that makes no progress while requests wait for it is ended, see `watch`. Its requests fail with WorkerHung.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Self

from .asyncio_worker import AsyncWorker
from .errors import LmwireError, StartFailed, WorkerLost, WorkerUnavailable
from .watch import WatchThread, watch
from .worker import Worker

STEP_LIMIT_S: Final = 300.0
"""Steps take a part of a second, and slow ones a few: this is far beyond, on any machine."""


class CrashLoop:
    """A breaker: after `limit` deaths within `window` seconds it opens, for `backoff` seconds.

    Each further death while there are as many within the window doubles the time, up to `longest`.

    Args:
        clock: seconds from any start.
    """

    def __init__(
        self,
        *,
        limit: int = 3,
        window: float = 60.0,
        backoff: float = 5.0,
        longest: float = 300.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._window, self._backoff, self._longest, self._clock = window, backoff, longest, clock
        self._deaths: deque[float] = deque(maxlen=limit)
        self._pause = 0.0
        self._last: LmwireError | None = None

    def record(self, death: LmwireError) -> None:
        """A worker has died, or did not come up."""
        self._last = death
        self._deaths.append(self._clock())
        crashing = len(self._deaths) == self._deaths.maxlen and self._deaths[-1] - self._deaths[0] <= self._window
        self._pause = min(max(self._backoff, 2 * self._pause), self._longest) if crashing else 0.0

    def check(self) -> None:
        """Allows a start.

        Raises:
            WorkerUnavailable: not yet. Its cause is the last death.
        """
        left = self._deaths[-1] + self._pause - self._clock() if self._pause else 0.0
        if left > 0:
            raise WorkerUnavailable(len(self._deaths), left) from self._last


class Supervisor:
    """Keeps a worker for threads.

    Args:
        make: makes a worker that has not been started.
        setup: brings a started one to where requests can come, as `lambda worker: worker.load(path)`.
        crash_loop: when to give up for a while.
        step_limit: seconds without progress, while a request waits, after which a worker counts as hung and is ended.
            A load makes progress as long as it reports some. None for never.
    """

    def __init__(
        self,
        setup: Callable[[Worker], object],
        *,
        make: Callable[[], Worker] = Worker,
        crash_loop: CrashLoop | None = None,
        step_limit: float | None = STEP_LIMIT_S,
    ) -> None:
        self._setup, self._make, self._crash_loop = setup, make, crash_loop or CrashLoop()
        self._step_limit = step_limit
        self._watch: WatchThread | None = None
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def worker(self) -> Worker:
        """The worker, started and set up first if there is none that lives.

        Raises:
            WorkerUnavailable: too many have died; nothing was tried.
            LmwireError: the start or the set-up failed.
        """
        with self._lock:
            if self._worker and self._worker.lost:
                self._crash_loop.record(self._worker.lost)
                self._end(self._worker)
                self._worker = None
            if self._worker is None:
                self._crash_loop.check()
                self._worker = self._start()
            return self._worker

    def close(self) -> None:
        """Ends the worker."""
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
                self._watch = WatchThread(worker, self._step_limit)
            self._setup(worker)
        except BaseException as error:
            if isinstance(error, StartFailed | WorkerLost):
                self._crash_loop.record(error)
            self._end(worker)
            raise
        return worker

    def _end(self, worker: Worker) -> None:
        if self._watch:
            self._watch.stop()
        worker.close()
        if self._watch:
            self._watch.join()
            self._watch = None


class AsyncSupervisor:
    """Keeps a worker for tasks; the arguments are `Supervisor`'s, with a `setup` to await."""

    def __init__(
        self,
        setup: Callable[[AsyncWorker], Awaitable[object]],
        *,
        make: Callable[[], AsyncWorker] = AsyncWorker,
        crash_loop: CrashLoop | None = None,
        step_limit: float | None = STEP_LIMIT_S,
    ) -> None:
        self._setup, self._make, self._crash_loop = setup, make, crash_loop or CrashLoop()
        self._step_limit = step_limit
        self._watch: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._worker: AsyncWorker | None = None

    async def worker(self) -> AsyncWorker:
        """The worker, started and set up first if there is none that lives; raises as `Supervisor.worker`."""
        async with self._lock:
            if self._worker and self._worker.lost:
                self._crash_loop.record(self._worker.lost)
                await self._end(self._worker)
                self._worker = None
            if self._worker is None:
                self._crash_loop.check()
                self._worker = await self._start()
            return self._worker

    async def close(self) -> None:
        """Ends the worker."""
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
                self._watch = asyncio.create_task(watch(worker, self._step_limit))
            await self._setup(worker)
        except BaseException as error:
            if isinstance(error, StartFailed | WorkerLost):
                self._crash_loop.record(error)
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: AsyncWorker) -> None:
        if self._watch:
            self._watch.cancel()
            self._watch = None
        await worker.close()
