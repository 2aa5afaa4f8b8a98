"""The watchdog of a worker: what counts as a hang, and what follows."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from lmwire import AsyncSupervisor, AsyncWorker, Supervisor, Worker, WorkerHung
from lmwire.watchdog import CHECKS, HangDetector
from lmwire_protocol.events import PingDone, State
from support.process.fake_worker import fake
from support.process.worker_process import SECONDS
from support.process.worker_thread import on_thread

Client = TypeVar("Client")

SOON_S = 0.02
"""A limit for a worker that hangs in any case. No other request than the one that hangs may run under it."""
PAUSE_S = 1.0
HOUR_S = 3600.0


def hanging(client: Callable[..., Client]) -> Callable[[], Client]:
    """Return what makes workers that hang."""
    return partial(client, fake("Hangs"), spawn=on_thread)


def ping(age_s: float | None, state: State = "running") -> PingDone:
    return PingDone(id="1", state=state, step_age_ms=None if age_s is None else age_s * 1000, active=1, queued=0)


STUCK = ping(HOUR_S)


def hung_at_checks(*pings: PingDone | None) -> list[bool]:
    """Return for each check whether the worker counts as hung."""
    detector = HangDetector(PAUSE_S * CHECKS)
    return [detector.check(answer, PAUSE_S) is not None for answer in pings]


def test_a_worker_without_progress_for_the_whole_limit_hangs() -> None:
    assert hung_at_checks(*[STUCK] * CHECKS) == [False] * (CHECKS - 1) + [True]


def test_a_worker_that_does_not_answer_hangs() -> None:
    assert hung_at_checks(*[None] * CHECKS)[-1]


def test_progress_resets_the_count() -> None:
    assert not any(hung_at_checks(*[STUCK] * (CHECKS - 1), ping(PAUSE_S / 2), *[None] * (CHECKS - 1)))


@pytest.mark.parametrize("excused", [ping(None, "idle"), ping(HOUR_S, "paused"), ping(HOUR_S, "draining")])
def test_a_worker_without_a_due_step_does_not_hang(excused: PingDone) -> None:
    assert not any(hung_at_checks(*[excused] * 3 * CHECKS))


def test_a_load_that_reports_progress_does_not_hang() -> None:
    assert not any(hung_at_checks(*[ping(PAUSE_S / 2, "loading")] * 3 * CHECKS))


def test_an_hour_of_sleep_is_one_check_without_progress() -> None:
    """Check that it does not matter whether the worker's clock or the host's ran meanwhile."""
    detector = HangDetector(PAUSE_S * CHECKS)
    assert [
        detector.check(ping(0.1), PAUSE_S),
        detector.check(ping(HOUR_S), PAUSE_S),
        detector.check(None, HOUR_S),
    ] == [None] * 3
    assert detector.check(ping(0.1), PAUSE_S) is None


def test_the_error_tells_a_silent_worker_from_one_whose_engine_hangs() -> None:
    assert (
        str(WorkerHung(300, True))
        == "the worker made no progress for 300 s while requests waited for it, and was ended"
    )
    assert str(WorkerHung(0.5, False)).startswith("the worker did not answer for 0.5 s")


def test_a_supervisor_ends_a_worker_that_hangs_and_starts_another_when_asked() -> None:
    with Supervisor(lambda worker: None, make=hanging(Worker), step_limit=SOON_S) as supervisor:
        hung = supervisor.worker()
        with pytest.raises(WorkerHung):
            hung.generate("forever").text()
        assert supervisor.worker() is not hung
        assert isinstance(hung.lost, WorkerHung)


def test_the_asyncio_supervisor_does_the_same() -> None:
    async def run() -> None:
        async def setup(worker: AsyncWorker) -> None:
            pass

        async with AsyncSupervisor(setup, make=hanging(AsyncWorker), step_limit=SOON_S) as supervisor:
            hung = await supervisor.worker()
            with pytest.raises(WorkerHung):
                await hung.generate("forever").text()
            assert await supervisor.worker() is not hung
            assert isinstance(hung.lost, WorkerHung)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize(("step_limit", "watches"), [(HOUR_S, 1), (None, 0)])
def test_a_supervisor_without_a_limit_has_no_watchdog(step_limit: float | None, watches: int) -> None:
    with Supervisor(lambda worker: None, make=hanging(Worker), step_limit=step_limit) as supervisor:
        supervisor.worker()
        assert sum(thread.name.startswith("lmwire-watch") for thread in threading.enumerate()) == watches


def test_a_load_that_hangs_is_ended_too() -> None:
    supervisor = Supervisor(lambda worker: worker.load("x"), make=hanging(Worker), step_limit=SOON_S)
    with pytest.raises(WorkerHung):
        supervisor.worker()
