"""Models that nobody uses end."""

import asyncio
from math import inf
from pathlib import Path

import pytest

from lmwire_http.pool import Pool
from support.http.http_pool import MOCK, Clock, asked, awaited, figures, pooled, said, until
from support.process.stepped_worker import in_a_row
from support.process.worker_thread import kill


@awaited
async def test_only_models_idle_for_long_enough_are_unloaded() -> None:
    clock = Clock()
    async with pooled(worker_command=MOCK, idle_s=60, clock=clock) as pool:
        await asked(pool, "mock")
        clock.now += 40
        await asked(pool, "mock:step_ms=1")
        async with pool.lease("mock:load_steps=2"):
            clock.now += 59
            assert loaded(pool) == {"mock", "mock:step_ms=1", "mock:load_steps=2"}
            await pool.idle_reaper.reap()
            assert loaded(pool) == {"mock:step_ms=1", "mock:load_steps=2"}
            clock.now += 1
            await pool.idle_reaper.reap()
            assert loaded(pool) == {"mock:load_steps=2"}
        assert pool.idle_reaper.next_check_s() == 60
        clock.now += 60
        await pool.idle_reaper.reap()
        assert loaded(pool) == set()


@awaited
async def test_an_idle_model_is_unloaded_and_loaded_again_on_request() -> None:
    async with pooled(worker_command=MOCK, idle_s=0.02) as pool:
        first, _ = await asked(pool, "mock")
        await until(lambda: not loaded(pool))
        second, text = await asked(pool, "mock")
        assert (first != second, text) == (True, "to be or not")
        replica = figures(pool, "mock").replicas[0]
        assert (replica.deaths, replica.restarts) == (0, 0)


@pytest.mark.slow
@awaited
async def test_a_request_during_an_unload_gets_a_new_worker(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "--fault ignore-sigterm", "")) as pool:
        old, _ = await asked(pool, "mock")
        ending = pool.lifecycle.unload(pool.models["mock"])
        client = asyncio.create_task(asked(pool, "mock"))
        await until(lambda: figures(pool, "mock").waiting)
        assert not ending.done()
        kill(old)  # what its patience would come to
        assert (await client)[1] == "to be or not"
        assert figures(pool, "mock").replicas[0].deaths == 0


@awaited
async def test_clients_choose_how_long_a_model_stays() -> None:
    clock = Clock()
    async with pooled(worker_command=MOCK, idle_s=60, clock=clock) as pool:
        for name in ("mock", "mock:step_ms=1", "mock:step_ms=2"):
            await asked(pool, name)
        pool.set_idle_limit("mock", 10)
        pool.set_idle_limit("mock:step_ms=1", inf)
        assert [figures(pool, id).remaining_s for id in sorted(loaded(pool))] == [10, None, 60]
        clock.now += 10
        await pool.idle_reaper.reap()
        assert loaded(pool) == {"mock:step_ms=1", "mock:step_ms=2"}
        clock.now += 50
        await pool.idle_reaper.reap()
        assert loaded(pool) == {"mock:step_ms=1"}


@awaited
async def test_the_choice_of_a_client_ends_with_the_unload() -> None:
    async with pooled(worker_command=MOCK) as pool:
        await asked(pool, "mock")
        pool.set_idle_limit("mock", 0)
        await until(lambda: not loaded(pool))
        pool.set_idle_limit("mock", 0)  # it is not in memory: nothing to limit
        await asked(pool, "mock")
        assert figures(pool, "mock").remaining_s is None


@awaited
async def test_a_model_in_use_is_unloaded_after_its_last_request() -> None:
    async with pooled(worker_command=MOCK) as pool:
        async with pool.lease("mock") as lease:
            await pool.unload_when_idle("mock")
            assert await lease.worker.chat([said("still here")], max_tokens=2).text() == "still here"
        await until(lambda: not loaded(pool))


@awaited
async def test_an_idle_model_is_unloaded_at_once() -> None:
    async with pooled(worker_command=MOCK) as pool:
        await asked(pool, "mock")
        await pool.unload_when_idle("mock")
        assert loaded(pool) == set()
        await pool.unload_when_idle("mock")  # again, which changes nothing


def loaded(pool: Pool) -> set[str]:
    return {resident.id for resident in pool.statuses() if resident.loaded}
