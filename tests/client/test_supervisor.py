"""The supervisors, and the circuit breaker that bounds their restarts."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from lmwire import (
    AsyncSupervisor,
    AsyncWorker,
    CircuitBreaker,
    StartFailed,
    Supervisor,
    Worker,
    WorkerExited,
    WorkerUnavailable,
)
from support.process.fake_worker import fake
from support.process.worker_process import SECONDS
from support.process.worker_thread import on_thread


def opens_after_two() -> CircuitBreaker:
    """Return a breaker that two failures open, even on a slow machine, for the rest of a test."""
    return CircuitBreaker(limit=2, window=SECONDS, backoff=SECONDS)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def die(breaker: CircuitBreaker, clock: Clock, *, every: float, times: int) -> None:
    for _ in range(times):
        clock.now += every
        breaker.record_failure(WorkerExited(70))


def test_the_breaker_opens_at_the_limit_and_closes_after_the_backoff() -> None:
    breaker = CircuitBreaker(limit=3, window=60, backoff=5, clock=(clock := Clock()))
    die(breaker, clock, every=1, times=2)
    breaker.check()
    die(breaker, clock, every=1, times=1)
    with pytest.raises(WorkerUnavailable, match="ended 3 times in short order; it can be tried again in 5 s") as error:
        breaker.check()
    assert error.value.retry_after == 5
    clock.now += 5
    breaker.check()


def test_each_further_failure_doubles_the_backoff_up_to_the_maximum() -> None:
    breaker = CircuitBreaker(limit=2, window=60, backoff=5, max_backoff=12, clock=(clock := Clock()))
    waits = []
    for _ in range(4):
        die(breaker, clock, every=15, times=1)
        try:
            breaker.check()
        except WorkerUnavailable as error:
            waits.append(error.retry_after)
    assert waits == [5, 10, 12]


def test_failures_far_apart_do_not_open_the_breaker() -> None:
    breaker = CircuitBreaker(limit=3, window=60, clock=(clock := Clock()))
    die(breaker, clock, every=31, times=10)
    breaker.check()


def test_a_long_life_resets_the_backoff() -> None:
    breaker = CircuitBreaker(limit=2, window=60, backoff=5, clock=(clock := Clock()))
    die(breaker, clock, every=10, times=4)
    die(breaker, clock, every=1000, times=1)
    die(breaker, clock, every=10, times=1)
    with pytest.raises(WorkerUnavailable) as error:
        breaker.check()
    assert error.value.retry_after == 5


def test_a_supervisor_starts_sets_up_and_keeps_one_worker() -> None:
    set_up: list[Worker] = []
    with Supervisor(set_up.append, make=partial(Worker, fake("Good"), spawn=on_thread)) as supervisor:
        worker = supervisor.worker()
        assert supervisor.worker() is worker
        assert worker.generate("one two").text() == "onetwo"
    assert set_up == [worker]
    assert isinstance(worker.lost, WorkerExited)


def test_a_dead_worker_is_replaced_on_demand_and_its_requests_are_not_repeated() -> None:
    set_up: list[Worker] = []
    with Supervisor(set_up.append, make=partial(Worker, fake("KilledMidStream"), spawn=on_thread)) as supervisor:
        with pytest.raises(WorkerExited):
            supervisor.worker().generate("x").text()
        assert len(set_up) == 1
        assert supervisor.worker().ping().active == 0
        assert len(set_up) == 2


def test_a_worker_that_cannot_start_opens_the_breaker() -> None:
    supervisor = Supervisor(
        lambda worker: None,
        make=partial(Worker, fake("CrashesBeforeHello"), spawn=on_thread),
        circuit_breaker=opens_after_two(),
    )
    for _ in range(2):
        with pytest.raises(StartFailed):
            supervisor.worker()
    with pytest.raises(WorkerUnavailable) as error:
        supervisor.worker()
    assert "exited with code 3" in str(error.value.__cause__)


def test_a_setup_that_fails_ends_the_worker_and_is_raised() -> None:
    made: list[Worker] = []

    def setup(worker: Worker) -> None:
        made.append(worker)
        raise LookupError("no such model")

    supervisor = Supervisor(setup, make=partial(Worker, fake("Good"), spawn=on_thread))
    with pytest.raises(LookupError):
        supervisor.worker()
    assert isinstance(made[0].lost, WorkerExited)


def test_the_asyncio_supervisor_does_the_same() -> None:
    set_up: list[AsyncWorker] = []

    async def setup(worker: AsyncWorker) -> None:
        set_up.append(worker)

    async def run() -> None:
        make: Callable[[], AsyncWorker] = partial(AsyncWorker, fake("KilledMidStream"), spawn=on_thread)
        async with AsyncSupervisor(setup, make=make, circuit_breaker=opens_after_two()) as supervisor:
            workers = await asyncio.gather(*(supervisor.worker() for _ in range(5)))
            assert set_up == [workers[0]]
            for _ in range(2):
                with pytest.raises(WorkerExited):
                    await (await supervisor.worker()).generate("x").text()
            with pytest.raises(WorkerUnavailable):
                await supervisor.worker()
        assert len(set_up) == 2

    asyncio.run(asyncio.wait_for(run(), SECONDS))
