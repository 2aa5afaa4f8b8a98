"""The start of the pool in the background, and whether the server can serve now, or else why it cannot."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from lmwire import LmwireError
from lmwire_protocol import events

from ..errors import ApiError
from ..settings import Settings
from .pool import Pool
from .replica import make_worker

HANG_MS: Final = 60_000
"""Age of a worker's last step at which it counts as hung, in milliseconds. A step takes a fraction of a second."""
_PING_S: Final = 2.0
_log = logging.getLogger("lmwire_http")


class Startup:
    """The task that finds the configured models and preloads them."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, start: Coroutine[Any, Any, None]) -> None:
        """Start the task without waiting for it."""
        self._task = asyncio.create_task(start)

    async def stop(self) -> None:
        """Cancel the task, and return when it has ended."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def is_done(self) -> bool:
        """Return whether the start has succeeded."""
        return self._task is not None and self._task.done() and self.failure is None

    @property
    def failure(self) -> BaseException | None:
        """Why the server cannot serve; None while it starts or after it has started."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def wait(self) -> None:
        """Return when the start has succeeded.

        Raises:
            ApiError: The start has failed.
        """
        if self._task and not self._task.done():
            await asyncio.wait([self._task])
        if not self.is_done:
            raise ApiError(503, "the server could not start; see its log", code="server_ending", retry_after=5)


class Readiness:
    """The readiness check that load balancers poll.

    Args:
        settings: The server's settings.
        pool: The models to check.
        startup: The pool's start.
    """

    def __init__(self, settings: Settings, pool: Pool, startup: Startup) -> None:
        self._settings, self._pool, self._startup = settings, pool, startup
        self._worker_starts = False
        self._start_lock = asyncio.Lock()
        self._revivals: dict[str, asyncio.Task[None]] = {}

    async def problem(self) -> str | None:
        """Return why the server cannot serve; None if it can."""
        if not self._startup.is_done:
            return "the models are being loaded"
        pings = await self._pool.ask_workers(lambda worker: worker.ping(timeout=_PING_S))
        hanging = [problem for model, replies in pings.items() if (problem := hang_problem(model, replies))]
        if hanging and (self._settings.preload or len(hanging) == len(pings)):
            return hanging[0]
        if _models_stay_loaded(self._settings):
            for model in self._pool.statuses():
                if model.loaded is None:
                    self._revive(model.id)
                    return f"{model.id}: its worker has died, and another is being started"
        return None if pings else await self._start_problem()

    def _revive(self, model: str) -> None:
        """Load a model again in the background: a server that is not ready receives no request that would load it."""
        if model not in self._revivals:
            self._revivals[model] = asyncio.create_task(self._load(model))
            self._revivals[model].add_done_callback(lambda _: self._revivals.pop(model))

    async def _load(self, model: str) -> None:
        try:
            async with self._pool.lease(model):
                return
        except ApiError:
            return  # the pool has logged it, and the next check tries again

    async def _start_problem(self) -> str | None:
        """Try to start a worker, until one has started."""
        async with self._start_lock:
            if self._worker_starts:
                return None
            try:
                async with make_worker(self._settings, "no model", None):
                    self._worker_starts = True
                    return None
            except LmwireError as error:
                _log.warning("no worker can be started: %s", error)
                return "no worker can be started; see the log"


def hang_problem(model: str, pings: Sequence[events.PingDone | None]) -> str | None:
    """Return a sentence if no worker of a model makes progress; None otherwise.

    Args:
        model: The model's id.
        pings: The workers' ping replies; None for a worker that did not answer.
    """
    if any(ping and (ping.step_age_ms is None or ping.step_age_ms < HANG_MS) for ping in pings):
        return None
    ages = [ping.step_age_ms for ping in pings if ping and ping.step_age_ms is not None]
    if not ages:
        return f"{model}: its worker does not answer"
    return f"{model}: its worker has made no progress for {min(ages) / 1000:.0f} s"


def _models_stay_loaded(settings: Settings) -> bool:
    """Return whether the preloaded models stay in memory until the server exits."""
    several = len(settings.models) > 1 or settings.serves_others
    unloads_models = settings.memory_limit is not None or (settings.measures_memory and several)
    return settings.preload and settings.idle_s is None and not unloads_models
