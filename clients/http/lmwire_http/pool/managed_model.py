"""A served model: its replicas, its request queue and its state in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from msgspec import UNSET

from lmwire import AsyncWorker, LmwireError
from lmwire_protocol import events

from ..errors import ApiError
from .fair_queue import FairQueue
from .hidden_paths import PathRedactor
from .memory_budget import LoadNeed
from .model_resolver import ModelSpec
from .replica import PrefixAffinity, Replica
from .status import LoadProgress, ModelStatus, OnProgress, ShowProgress

T = TypeVar("T")

_RETRY_S: Final = 1.0
_DEFAULT_BATCH_SIZE: Final = 32
"""Batch size of a worker that does not report one."""
MAX_PROMPTS: Final = 8
"""Requests for a prompt, such as counts of tokens, that each replica works on at once. One takes milliseconds, or a
second with much text, and delays the prompts of all clients."""
MAX_DECODING: Final = 4
"""Requests whose images and sounds each replica decodes at once: one for each of a worker's decoders."""
_WORKER_REPLY_S: Final = 2.0
"""Time for a worker to answer, in seconds. It answers at once unless it hangs or the machine is busy."""


class ManagedModel:
    """A model with its replicas.

    Args:
        spec: The model that the replicas load.
        replicas: Number of replicas.
        paths: Removes the model's folders from error messages.
        make: Returns a worker that has not been started.
        load: Loads the model into a worker, and reports its progress.
        show_progress: Shows how far a load has come.
        max_requests: Most requests at once, waiting ones included.
        step_limit_s: End a worker after this time without progress, in seconds; never if 0.
        clock: Returns a monotonic time in seconds.
    """

    def __init__(
        self,
        spec: ModelSpec,
        replicas: int,
        paths: PathRedactor,
        make: Callable[["ManagedModel"], AsyncWorker],
        load: Callable[[AsyncWorker, OnProgress], Awaitable[events.ModelDone]],
        show_progress: ShowProgress,
        *,
        max_requests: int,
        step_limit_s: float,
        clock: Callable[[], float],
    ) -> None:
        self.spec, self.paths = spec, paths
        self.users = 0
        """Number of requests for the model, waiting ones included."""
        self.last_used = clock()
        self.idle_s: float | None = None
        """Time without a request after which clients want the model unloaded, in seconds; the server's if None."""
        self.load_task: asyncio.Task[None] | None = None
        """Reserves memory and loads the model."""
        self.load_progress: LoadProgress | None = None
        """The last report of a worker that loads the model; None outside of a load."""
        self.unload_task: asyncio.Task[None] | None = None
        """Unloads the model."""
        self.has_memory = False
        """True while the budget reserves memory for the model."""
        self.load_need = LoadNeed()
        self.fair_queue = FairQueue(self._batch_size)
        """Decides which request goes to the workers next."""
        self.prompt_queue = FairQueue(lambda: MAX_PROMPTS * replicas)
        """The same for requests that only need a prompt: they do not wait for answers to end."""
        self.media_queue = FairQueue(lambda: MAX_DECODING * replicas)
        """The same for requests with images or sounds, until these are decoded. They wait here first."""
        self._max_requests, self._clock = max_requests, clock
        self._affinity = PrefixAffinity()
        self.replicas = [
            Replica(
                spec.id,
                partial(make, self),
                partial(self._load, load, show_progress),
                partial(self._affinity.forget, number),
                step_limit_s,
                clock,
            )
            for number in range(replicas)
        ]

    @property
    def is_idle(self) -> bool:
        """Return whether the model is in memory without users."""
        return self.has_memory and not (self.users or self.load_task or self.unload_task)

    @property
    def is_unloading(self) -> bool:
        """Return whether the model is being unloaded, and no load delays that or follows it."""
        return self.has_memory and self.unload_task is not None and self.load_task is None

    @property
    def is_serving(self) -> bool:
        """Return whether a worker can serve a request now."""
        return not self.unload_task and any(replica.worker for replica in self.replicas)

    @property
    def load_bytes(self) -> int:
        """Memory that a load needs in all replicas, in bytes, as far as it is known."""
        return self.load_need.bytes(self.spec) * len(self.replicas)

    @property
    def loaded(self) -> events.ModelDone | None:
        """The worker's description of the model; None while it is not loaded."""
        return next((replica.loaded for replica in self.replicas if replica.worker), None)

    @contextmanager
    def in_use(self, *, is_limited: bool = True) -> Generator[None]:
        """Count a request as a user of the model while the block runs.

        Args:
            is_limited: Whether the request is refused if there are too many.

        Raises:
            ApiError: The model already has the most requests it may have.
        """
        if is_limited and self.users >= self._max_requests:
            problem = f"{self.spec.id} has {self.users} requests, the most it may have; try again later"
            raise ApiError(429, problem, code="busy", retry_after=_RETRY_S)
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1
            self.last_used = self._clock()

    def load_finished(self) -> None:
        """Record that a load has succeeded or failed."""
        self.load_task = None
        self.load_progress = None
        self.last_used = self._clock()

    def choose_replica(self, prompt: Sequence[object]) -> Replica | None:
        """Return the running replica for a prompt; None if none runs. Start the others for later requests.

        Args:
            prompt: The prompt's parts, in order.
        """
        up = [number for number, replica in enumerate(self.replicas) if replica.worker]
        for replica in self.replicas:
            replica.revive()
        if len(up) <= 1:
            return self.replicas[up[0]] if up else None
        return self.replicas[self._affinity.choose(prompt, [replica.in_flight for replica in self.replicas], up)]

    async def _load(
        self,
        load: Callable[[AsyncWorker, OnProgress], Awaitable[events.ModelDone]],
        show_progress: ShowProgress,
        worker: AsyncWorker,
    ) -> events.ModelDone:
        with show_progress(self.spec.id) as show:
            return await load(worker, partial(self._note_progress, show))

    def _note_progress(self, show: OnProgress, progress: events.Progress) -> None:
        total = UNSET if progress.total is None else progress.total
        self.load_progress = LoadProgress(
            stage=progress.stage, current=progress.current, total=total, unit=progress.unit
        )
        show(progress)

    def _batch_size(self) -> int:
        """Return the number of rows that all workers can compute together."""
        return sum(replica.loaded.batch_size or _DEFAULT_BATCH_SIZE for replica in self.replicas if replica.worker)

    async def start(self) -> None:
        """Start all replicas at once, and return when they have loaded the model.

        Raises:
            LmwireError: A replica failed. The others continue.
        """
        await asyncio.gather(*(replica.start() for replica in self.replicas if not replica.worker))
        if self.loaded:
            self.load_need.record_loaded(self.loaded)

    async def close(self) -> None:
        """End all replicas at once, and return when they have exited."""
        self.idle_s = None
        await asyncio.gather(*(replica.close() for replica in self.replicas))

    async def memory_bytes(self, within_s: float | None = None) -> int | None:
        """Return the memory that the workers use, in bytes; None if one of them does not report it in time."""
        timeout = _WORKER_REPLY_S if within_s is None else within_s
        answers = await self.ask_replicas(lambda worker: worker.stats(timeout=timeout))
        reports = [stats.memory if stats else None for stats in answers]
        known = [report.active_bytes + report.cache_bytes for report in reports if report]
        return sum(known) if len(known) == len(reports) else None

    async def clear_cache(self, within_s: float | None = None) -> bool:
        """Clear the workers' caches, and return whether every running worker has done so in time."""
        timeout = _WORKER_REPLY_S if within_s is None else within_s
        answers = await self.ask_replicas(lambda worker: worker.clear_cache(timeout=timeout))
        return all(answer is not None for answer, replica in zip(answers, self.replicas, strict=True) if replica.worker)

    async def ask_replicas(self, question: Callable[[AsyncWorker], Awaitable[T]]) -> list[T | None]:
        """Return each replica's answer; None for a replica that does not run or does not answer in time."""
        return await asyncio.gather(*(_answer(replica.worker, question) for replica in self.replicas))

    def status(self, remaining_s: float | None = None) -> ModelStatus:
        """Return a snapshot of the model.

        Args:
            remaining_s: Time until it is unloaded, in seconds; None if it stays.
        """
        return ModelStatus(
            id=self.spec.id,
            path=self.spec.path,
            loaded=self.loaded,
            loading=self.load_task is not None,
            remaining_s=remaining_s,
            waiting=self.users - sum(replica.in_flight for replica in self.replicas),
            replicas=[replica.status() for replica in self.replicas],
        )


async def _answer(worker: AsyncWorker | None, question: Callable[[AsyncWorker], Awaitable[T]]) -> T | None:
    if worker is None:
        return None
    try:
        return await question(worker)
    except LmwireError:
        return None
