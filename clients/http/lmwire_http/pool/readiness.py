"""Whether the server can serve now, and why not: a worker that answers and makes progress, or one that can start."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from lmwire import LmwireError
from lmwire_protocol import events

from ..errors import ApiError
from .worker_factory import make_worker

if TYPE_CHECKING:
    from ..http.app_state import Service

STUCK_MS: Final = 60_000
"""A worker that made no progress for so long hangs: its steps take a part of a second, and a long prompt has many."""
_PING_S: Final = 2.0
_log = logging.getLogger("lmwire_http")


class Readiness:
    """What those ask for who would send requests."""

    def __init__(self) -> None:
        self._starts = False
        self._trying = asyncio.Lock()
        self._reviving: dict[str, asyncio.Task[None]] = {}

    async def problem(self, service: "Service") -> str | None:
        """A sentence that says why the server cannot serve; None when it can."""
        if not service.startup.over:
            return "the models are being loaded"
        told = await service.pool.ping(_PING_S)
        hanging = [problem for model, pings in told.items() if (problem := hangs(model, pings))]
        if hanging and (service.settings.preload or len(hanging) == len(told)):
            return hanging[0]
        if _all_stay(service):
            for resident in service.pool.residents():
                if resident.model is None:
                    self._revive(service, resident.id)
                    return f"{resident.id}: its worker has died, and another is being started"
        return None if told else await self._start_problem(service)

    def _revive(self, service: "Service", model: str) -> None:
        """Has a model loaded again: who sends nothing to a server that is not ready never asks for it."""
        if model not in self._reviving:
            self._reviving[model] = asyncio.create_task(_load(service, model))
            self._reviving[model].add_done_callback(lambda _: self._reviving.pop(model))

    async def _start_problem(self, service: "Service") -> str | None:
        """Tries whether a worker can be started, until one has been."""
        async with self._trying:
            if self._starts:
                return None
            try:
                async with make_worker(service.settings, "no model", None):
                    self._starts = True
                    return None
            except LmwireError as error:
                _log.warning("no worker can be started: %s", error)
                return "no worker can be started; the log says why"


def hangs(model: str, pings: Sequence[events.PingDone | None]) -> str | None:
    """Says so when no worker of a model makes progress. One that did not answer is None."""
    if any(ping and (ping.step_age_ms is None or ping.step_age_ms < STUCK_MS) for ping in pings):
        return None
    ages = [ping.step_age_ms for ping in pings if ping and ping.step_age_ms is not None]
    if not ages:
        return f"{model}: its worker does not answer"
    return f"{model}: its worker has made no progress for {min(ages) / 1000:.0f} s"


def _all_stay(service: "Service") -> bool:
    """Whether what was loaded at the start is to be in memory until the end."""
    settings = service.settings
    return settings.preload and settings.idle_s is None and settings.memory_bytes is None


async def _load(service: "Service", model: str) -> None:
    try:
        async with service.pool.lease(model):
            return
    except ApiError:
        return  # the pool has logged it, and the next one who asks has it tried again
