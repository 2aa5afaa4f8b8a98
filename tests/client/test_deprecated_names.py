"""Former public names, which still work and warn."""

from inspect import isawaitable
from typing import Any

import pytest

import lmwire
from lmwire import AsyncSupervisor, CircuitBreaker, ShutdownTimeouts, Supervisor, WorkerExited, WorkerLost
from lmwire.deprecation import RENAMED
from support.process.fake_worker import fake
from support.protocol.both_clients import CLIENTS, MakeWorker, on_both_clients


@pytest.mark.parametrize(("former", "present"), RENAMED.items())
def test_a_former_name_is_the_present_one(former: str, present: str) -> None:
    with pytest.deprecated_call(match=f"^lmwire.{former} is deprecated: use {present}$") as warnings:
        assert getattr(lmwire, former) is getattr(lmwire, present)
    assert [warning.filename for warning in warnings] == [__file__]
    assert present in lmwire.__all__
    assert former not in lmwire.__all__


def test_a_name_that_never_existed_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Peace'"):
        _ = lmwire.Peace


@pytest.mark.parametrize("make_worker", CLIENTS, ids=["sync", "async"])
def test_a_worker_takes_the_former_keyword(make_worker: MakeWorker) -> None:
    timeouts = ShutdownTimeouts(quit=1.5)
    with pytest.deprecated_call(match="^patience= is deprecated: use shutdown_timeouts=$") as warnings:
        worker = make_worker(fake("Good"), patience=timeouts)
    assert worker._shutdown_timeouts is timeouts
    assert len(warnings) == 1


@pytest.mark.parametrize("supervisor", [Supervisor, AsyncSupervisor])
def test_a_supervisor_takes_the_former_keyword(supervisor: type[Supervisor]) -> None:
    breaker = CircuitBreaker()
    former: dict[str, Any] = {"crash_loop": breaker}
    with pytest.deprecated_call(match="^crash_loop= is deprecated: use circuit_breaker=$") as warnings:
        supervised = supervisor(lambda _: None, **former)
    assert supervised._circuit_breaker is breaker
    assert [warning.filename for warning in warnings] == [__file__]


def test_a_circuit_breaker_takes_the_former_keyword() -> None:
    former: dict[str, Any] = {"longest": 7.0}
    with pytest.deprecated_call(match="^longest= is deprecated: use max_backoff=$"):
        assert CircuitBreaker(**former)._max_backoff == 7.0


@on_both_clients
async def test_the_former_methods_work(make_worker: MakeWorker) -> None:
    async with make_worker(fake("Good")) as worker:
        stream = worker.generate("one")
        with pytest.deprecated_call(match=r"Stream\.batch is deprecated: use read_available$"):
            items = stream.batch()
        if isawaitable(items):
            items = await items
        assert [delta.text for delta in items] == ["one"]
        with pytest.deprecated_call(match=r"Worker\.works is deprecated: use busy$"):
            works = worker.works
        assert works is worker.busy
        with pytest.deprecated_call(match=r"Worker\.give_up is deprecated: use abort$"):
            give_up = worker.give_up
        await give_up(lost := WorkerExited(70))
        with pytest.raises(WorkerLost):
            await worker.ping()
        assert worker.lost is lost
