"""Several workers of one model."""

import asyncio

import pytest

from lmwire_http.pool import Pool
from support.http.http_pool import MOCK, asked, awaited, figures, pooled, until
from support.process.worker_thread import kill


async def continued(pool: Pool, *turns: str) -> tuple[int, int]:
    """The process that a conversation went to, and how many of its tokens were known there."""
    async with pool.lease("mock", prompt=turns) as lease:
        stream = lease.worker.generate(" ".join(turns), max_tokens=1)
        await stream.wait()
        return lease.worker.pid, stream.result.usage.cached_tokens


@awaited
async def test_conversations_are_spread_and_come_back_to_the_worker_that_has_them_cached() -> None:
    async with pooled(worker_command=MOCK, replicas=3) as pool:
        began = {name: await continued(pool, f"{name} is here.", "Hello!") for name in ("Ada", "Bob", "Cem", "Dua")}
        assert [known for _, known in began.values()] == [0, 0, 0, 0]
        assert len({pid for pid, _ in began.values()}) == 3
        for name, (pid, _) in reversed(began.items()):
            assert await continued(pool, f"{name} is here.", "Hello!", "Who am I?") == (pid, 3)


@awaited
async def test_requests_at_once_are_spread_over_all() -> None:
    async with pooled(worker_command=MOCK, replicas=3) as pool, asyncio.TaskGroup() as clients:
        everybody_is_there = asyncio.Event()
        pids: list[int] = []

        async def client() -> None:
            async with pool.lease("mock", prompt=["the same"], rows=1) as lease:
                pids.append(lease.worker.pid)
                await everybody_is_there.wait()

        for _ in range(30):
            clients.create_task(client())
        await until(lambda: len(pids) == 30)
        in_flight = [replica.in_flight for replica in figures(pool, "mock").replicas]
        assert sum(in_flight) == 30
        assert max(in_flight) <= 13  # 1.25 times the mean
        assert min(in_flight) >= 5
        everybody_is_there.set()


@pytest.mark.slow
@awaited
async def test_all_replicas_are_asked_to_end_before_any_has_ended() -> None:
    async with pooled(worker_command=(*MOCK, "--fault", "ignore-sigterm"), replicas=3) as pool:
        await asked(pool, "mock")
        pids = [replica.pid for replica in figures(pool, "mock").replicas]
        closing = asyncio.create_task(pool.close())
        await until(lambda: not any(replica.pid for replica in figures(pool, "mock").replicas))
        assert not closing.done()
        for pid in filter(None, pids):
            kill(pid)  # what their patience would come to
        await closing
        assert sum(replica.deaths for replica in figures(pool, "mock").replicas) == 0


@awaited
async def test_statistics_cover_every_replica() -> None:
    async with pooled(worker_command=MOCK, replicas=2) as pool:
        await asked(pool, "mock")
        stats = (await pool.ask_workers(lambda worker: worker.stats(timeout=60)))["mock"]
        assert sorted(each.requests.done for each in stats if each) == [1, 2]
