"""A worker's death: what it takes along, and what comes after it."""

import asyncio
from pathlib import Path

import pytest

from lmwire import WorkerLost
from lmwire_http.errors import ApiError
from lmwire_http.pool import Pool
from support.http.http_pool import Clock, asked, awaited, figures, pooled, said, until
from support.process.stepped_worker import in_a_row, let_through, started
from support.process.worker_thread import kill


async def killed(pool: Pool, pid: int) -> None:
    """Kill a worker, and wait until the pool has noticed."""
    kill(pid)
    await until(lambda: all(replica.pid != pid for resident in pool.statuses() for replica in resident.replicas))


@pytest.mark.slow
@awaited
async def test_a_crash_ends_the_requests_on_the_worker_and_the_next_one_gets_another(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "--fault crash-mid-stream", "")) as pool:
        all_have_leases = asyncio.Barrier(3)

        async def lose() -> None:
            async with pool.lease("mock") as lease:
                await all_have_leases.wait()
                await lease.worker.chat([said("to be or not")]).text()

        lost = await asyncio.gather(*(lose() for _ in range(3)), return_exceptions=True)
        assert [isinstance(error, WorkerLost) for error in lost] == [True] * 3
        assert figures(pool, "mock").replicas[0].deaths == 1
        assert (await asked(pool, "mock"))[1] == "to be or not"
        replica = figures(pool, "mock").replicas[0]
        assert (replica.deaths, replica.restarts, started(tmp_path)) == (1, 1, 2)


@awaited
async def test_a_crash_does_not_affect_other_models(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "--token-ms 1")) as pool:
        doomed, _ = await asked(pool, "mock")
        async with pool.lease("mock:step_ms=1") as lease, lease.worker.chat([said("on")], max_tokens=500) as stream:
            deltas = aiter(stream)
            await anext(deltas)
            await killed(pool, doomed)
            assert await stream.text() == "on" * 499
        assert figures(pool, "mock:step_ms=1").replicas[0].deaths == 0


@pytest.mark.slow
@awaited
async def test_a_worker_that_dies_while_it_loads_is_reported_as_lost_and_can_be_retried(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "--fault crash-start", "")) as pool:
        with pytest.raises(ApiError) as error:
            await asked(pool, "mock")
        assert (error.value.status, error.value.code, error.value.retry_after) == (503, "worker_lost", 1.0)
        assert (await asked(pool, "mock"))[1] == "to be or not"
        assert figures(pool, "mock").replicas[0].deaths == 1


@pytest.mark.slow
@awaited
async def test_a_worker_that_dies_repeatedly_is_not_restarted_for_a_while(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "--fault crash-start"), clock=Clock()) as pool:
        for _ in range(3):
            with pytest.raises(ApiError, match="has exited"):
                await asked(pool, "mock")
        with pytest.raises(ApiError, match="ended 3 times in short order") as error:
            await asked(pool, "mock")
        assert (error.value.status, error.value.code) == (503, "worker_unavailable")
        assert error.value.retry_after == 5
        assert started(tmp_path) == figures(pool, "mock").replicas[0].deaths == 3


@awaited
async def test_while_one_replica_comes_up_again_the_others_serve(tmp_path: Path) -> None:
    async with pooled(worker_command=in_a_row(tmp_path, "", "", "gate"), replicas=2) as pool:
        await asked(pool, "mock")
        first, second = (replica.pid for replica in figures(pool, "mock").replicas)
        assert first and second
        await killed(pool, first)
        for _ in range(3):
            assert (await asked(pool, "mock"))[0] == second
        await asyncio.to_thread(let_through, tmp_path, 2)
        await until(lambda: all(replica.pid for replica in figures(pool, "mock").replicas))
        assert [replica.restarts for replica in figures(pool, "mock").replicas] == [1, 0]
