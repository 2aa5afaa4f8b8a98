"""The replicas of a model: one worker each, started again after it has died or hung, and the choice among them."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Final

import msgspec

from lmwire import DEFAULT_COMMAND, AsyncSupervisor, AsyncWorker, CircuitBreaker, StartFailed, WorkerHung, WorkerLost
from lmwire_protocol import events

from ..settings import Settings
from .status import ReplicaStatus

_LIMIT = "--memory-limit"
_worker_log = logging.getLogger("lmwire_http.worker")
_LOAD_RETRY_S: Final = 5.0
"""Time before a replica whose load failed is tried again while others serve, in seconds."""
_log = logging.getLogger("lmwire_http")
_MAX_PREFIXES: Final = 16_384
"""Number of prompt prefixes to remember. They take a few megabytes."""
_LOAD_FACTOR: Final = 1.25
"""Most requests of a replica, as a multiple of the mean.

See consistent hashing with bounded loads: https://arxiv.org/abs/1608.01350
"""
_LOAD_SLACK: Final = 4
"""Requests that a replica may always have more than the least busy one: a larger batch costs little."""
_FIRST_CUT_BYTES: Final = 1024
"""Length of the first hashed piece of a long part, in bytes.

Each next cut is at twice the length, so that texts with different ends still share prefixes.
"""


def make_worker(settings: Settings, model: str, memory: int | None) -> AsyncWorker:
    """Return a worker that has not been started. Its stderr goes to the log.

    Args:
        settings: The server's settings, with the worker's command and arguments.
        model: The model's name, for the log.
        memory: The worker's memory limit in bytes; None for none. Custom worker commands do not receive it.
    """
    log = partial(_worker_log.info, "%s: %s", model)
    if settings.worker_command:
        return AsyncWorker([*settings.worker_command, *settings.worker_args], on_stderr=log)
    limit = () if memory is None or _LIMIT in settings.worker_args else (_LIMIT, str(memory))
    command = [*DEFAULT_COMMAND, *settings.worker_args, *limit]
    return AsyncWorker(command, watch_host=True, on_stderr=log)


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


class PrefixAffinity:
    """Map from prompt prefixes to the replicas that have processed them, least recently used first.

    A prompt is a chain of hashes. Each hash covers all parts before it, so equal hashes mean equal prefixes.
    """

    def __init__(self) -> None:
        self.replicas_of: OrderedDict[int, set[int]] = OrderedDict()
        self._choice_count = 0
        self._last_chosen: dict[int, int] = {}
        """Number of the choice that last selected each replica."""

    def choose(self, prompt: Sequence[object], load: Sequence[int], candidates: Sequence[int]) -> int:
        """Choose the replica for a prompt and remember that choice.

        The least busy replica with the longest cached prefix wins, unless it has far more requests than the others.

        Args:
            prompt: The prompt's parts, in order.
            load: Number of requests of each replica.
            candidates: Numbers of the replicas that can be chosen.

        Returns:
            The replica's number.
        """
        links = list(prefix_hashes(prompt))
        limit = ceil(_LOAD_FACTOR * (sum(load[number] for number in candidates) + 1) / len(candidates))
        # Among equally busy replicas, take the one that was chosen longest ago, to spread new prompts.
        least_loaded = min(candidates, key=lambda number: (load[number], self._last_chosen.get(number, 0)))
        cached_on = next(
            (seen for link in reversed(links) if (seen := self.replicas_of.get(link, set()).intersection(candidates))),
            None,
        )
        chosen = min(cached_on, key=lambda number: load[number]) if cached_on else least_loaded
        if load[chosen] >= max(limit, load[least_loaded] + _LOAD_SLACK):
            chosen = least_loaded
        self._remember(links, chosen)
        self._choice_count += 1
        self._last_chosen[chosen] = self._choice_count
        return chosen

    def forget(self, replica: int) -> None:
        """Forget the prefixes of a replica that lost its cache."""
        for seen in self.replicas_of.values():
            seen.discard(replica)

    def _remember(self, links: Sequence[int], replica: int) -> None:
        for link in reversed(links):  # short prefixes last: prompts share them, so they are forgotten last
            self.replicas_of.setdefault(link, set()).add(replica)
            self.replicas_of.move_to_end(link)
        while len(self.replicas_of) > _MAX_PREFIXES:
            self.replicas_of.popitem(last=False)


def prefix_hashes(prompt: Sequence[object]) -> Iterator[int]:
    """Yield the hashes of a prompt's prefixes, from the shortest to the whole prompt."""
    link = 0
    for part in prompt:
        data = memoryview(part.encode() if isinstance(part, str) else _encoder.encode(part))
        start, cut = 0, _FIRST_CUT_BYTES
        while start < len(data):
            link = hash((link, bytes(data[start:cut])))
            yield link
            start, cut = cut, 2 * cut


_encoder = msgspec.msgpack.Encoder(enc_hook=repr)
