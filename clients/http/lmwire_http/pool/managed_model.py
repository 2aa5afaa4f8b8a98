"""A model that is in memory, was, or will be: its replicas, who uses it, and how busy it may be."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from lmwire import AsyncWorker, LmwireError
from lmwire_protocol import events

from ..errors import ApiError
from .affinity import Affinity
from .fair_queue import Turns
from .model_spec import Target
from .replica import Replica
from .status import ResidentFigures

Told = TypeVar("Told")

_RETRY_S: Final = 1.0
_ROWS: Final = 32
"""Of a worker that does not say how many it has."""
_FIGURES_S: Final = 2.0
"""For an idle worker to answer: it does so at once, unless it hangs or the machine is busy."""


class Resident:
    """One model's replicas.

    Args:
        target: What they load.
        replicas: How many there are.
        make: Makes a worker that has not been started.
        load: Loads the model.
        queue: Requests at once, at most, with those that wait.
        step_limit_s: Without progress, after which a worker is ended; 0 for never.
        clock: Seconds from any start.
    """

    def __init__(
        self,
        target: Target,
        replicas: int,
        make: Callable[["Resident"], AsyncWorker],
        load: Callable[[AsyncWorker], Awaitable[events.ModelDone]],
        *,
        queue: int,
        step_limit_s: float,
        clock: Callable[[], float],
    ) -> None:
        self.target = target
        self.users = 0
        """Requests, those that wait for the model included."""
        self.last_used = clock()
        self.opening: asyncio.Task[None] | None = None
        """Finds room for the model and loads it."""
        self.ending: asyncio.Task[None] | None = None
        """Takes it out of memory."""
        self.placed = False
        """Whether it has memory."""
        self.turns = Turns(self._rows)
        """Whose request goes to the workers next."""
        self._queue, self._clock = queue, clock
        self._affinity = Affinity()
        self.replicas = [
            Replica(target.id, partial(make, self), load, partial(self._affinity.forget, number), step_limit_s)
            for number in range(replicas)
        ]

    @property
    def idle(self) -> bool:
        """Whether it is in memory, and nobody uses it or waits for it."""
        return self.placed and not (self.users or self.opening or self.ending)

    @property
    def up(self) -> bool:
        """Whether a request can be served now."""
        return not self.ending and any(replica.worker for replica in self.replicas)

    @property
    def model(self) -> events.ModelDone | None:
        """What is loaded; None while nothing is."""
        return next((replica.facts for replica in self.replicas if replica.worker), None)

    @contextmanager
    def used(self) -> Iterator[None]:
        """A request wants the model, or has it.

        Raises:
            ApiError: too many do.
        """
        if self.users >= self._queue:
            problem = f"{self.target.id} has {self.users} requests, which is as many as it may; try again later"
            raise ApiError(429, problem, code="busy", retry_after=_RETRY_S)
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1
            self.last_used = self._clock()

    def opened(self) -> None:
        """It is in memory, or could not be brought there."""
        self.opening = None
        self.last_used = self._clock()

    def choose(self, prompt: Sequence[object]) -> Replica | None:
        """The replica for a prompt, of those that live; None when none does. The others are started for later ones."""
        up = [number for number, replica in enumerate(self.replicas) if replica.worker]
        for replica in self.replicas:
            replica.revive()
        if len(up) <= 1:
            return self.replicas[up[0]] if up else None
        return self.replicas[self._affinity.choose(prompt, [replica.in_flight for replica in self.replicas], up)]

    def _rows(self) -> int:
        """Return how many answers the workers can work on together."""
        return sum(replica.facts.batch_size or _ROWS for replica in self.replicas if replica.worker)

    async def start(self) -> None:
        """Starts all replicas at once, and returns when they have come up.

        Raises:
            LmwireError: one has not. The others go on.
        """
        await asyncio.gather(*(replica.start() for replica in self.replicas if not replica.worker))

    async def close(self) -> None:
        """Ends all replicas at once, and returns when they are gone."""
        await asyncio.gather(*(replica.close() for replica in self.replicas))

    async def held(self) -> int | None:
        """What the workers have in memory, in bytes; None when one of them does not tell."""
        figures = [stats and stats.memory for stats in await self.ask(lambda worker: worker.stats(timeout=_FIGURES_S))]
        known = [figure.active_bytes + figure.cache_bytes for figure in figures if figure]
        return sum(known) if len(known) == len(figures) else None

    async def clear(self) -> bool:
        """Have the workers give up what they have cached, and return whether all that live have done so in time."""
        freed = await self.ask(lambda worker: worker.clear_cache(timeout=_FIGURES_S))
        return all(told is not None for told, replica in zip(freed, self.replicas, strict=True) if replica.worker)

    async def ask(self, question: Callable[[AsyncWorker], Awaitable[Told]]) -> list[Told | None]:
        """What each replica answers; None for one that does not live, or does not answer in time."""
        return await asyncio.gather(*(_answer(replica.worker, question) for replica in self.replicas))

    def figures(self) -> ResidentFigures:
        """What it looks like now."""
        return ResidentFigures(
            id=self.target.id,
            path=self.target.path,
            model=self.model,
            loading=self.opening is not None,
            waiting=self.users - sum(replica.in_flight for replica in self.replicas),
            replicas=[replica.figures() for replica in self.replicas],
        )


async def _answer(worker: AsyncWorker | None, question: Callable[[AsyncWorker], Awaitable[Told]]) -> Told | None:
    if worker is None:
        return None
    try:
        return await question(worker)
    except LmwireError:
        return None
