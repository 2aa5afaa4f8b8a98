"""Real models that share memory which does not hold them all."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from lmwire import LocalModel, local_models
from lmwire_http.errors import ApiError
from lmwire_http.pool import Pool, managed_model, model_lifecycle
from support.http.http_pool import MOCK, asked, awaited, figures, pooled, until
from support.process.process_waits import stop
from support.process.stepped_worker import in_a_row, started

Listing: TypeAlias = Callable[..., Sequence[LocalModel]]

TINY, TWIN = "builtin:tiny", "made-up/twin"
ONE = 24_000_000
"""Bytes that hold one of the models, whose weights take 13.9 MB, and not two."""
BOTH = 3 * ONE
"""Bytes that hold both models with all that they cache, so that the pool's own reaper changes nothing."""
CACHED = 500_000
"""Bytes, not all that a worker keeps after an answer and can do without."""
QUESTION = "Who are you?"


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Listing:
    """Two models: the built-in one, and a copy of it."""
    [tiny] = [model for model in local_models() if model.id == TINY]
    copy = shutil.copytree(tiny.path, tmp_path_factory.mktemp("models") / "twin")
    twin = msgspec.structs.replace(tiny, id=TWIN, path=str(copy))
    return lambda *folders: [tiny, twin]


@pytest.fixture(scope="module")
def sizeless(listing: Listing) -> Listing:
    """The same, of which nobody knows how large they are."""
    models = [msgspec.structs.replace(model, size_bytes=0) for model in listing()]
    return lambda *folders: models


def in_memory(pool: Pool) -> list[str]:
    return [resident.id for resident in pool.statuses() if resident.loaded]


async def held_by(pool: Pool, *models: str) -> int:
    """Return the memory of the models' workers, in bytes.

    `info` is answered after the work on earlier requests, such as keeping their caches. `stats` does not wait for it.
    """
    await pool.ask_workers(lambda worker: worker.info(timeout=60))
    stats = await pool.ask_workers(lambda worker: worker.stats(timeout=60))
    return sum(each.memory.active_bytes + each.memory.cache_bytes for model in models for each in stats[model] if each)


async def looked(pool: Pool, enough: Callable[[int], bool]) -> None:
    """Run the reaper until the models' memory is as expected. A worker may be slow to answer."""
    while True:
        await pool.idle_reaper.reap()
        if enough(await held_by(pool, *in_memory(pool))):
            return
        await asyncio.sleep(0)  # without a model nothing above waits, and the test's time limit could not end it


@pytest.mark.slow
@awaited
async def test_two_at_once_are_served_one_after_the_other_and_what_is_in_use_is_waited_for(listing: Listing) -> None:
    async with pooled(memory_bytes=ONE, listing=listing) as pool:
        (_, one), (_, other) = await asyncio.gather(asked(pool, TINY, QUESTION), asked(pool, TWIN, QUESTION))
        assert one == other != ""
        [last] = in_memory(pool)
        gone = TWIN if last == TINY else TINY
        async with pool.lease(last):
            client = asyncio.create_task(asked(pool, gone, QUESTION))
            await until(lambda: figures(pool, gone).loading)
            assert in_memory(pool) == [last]
        assert (await client)[1] == one
        assert in_memory(pool) == [gone]
        assert figures(pool, last).replicas[0].deaths == 0


@pytest.mark.slow
@awaited
async def test_a_request_that_waits_in_vain_is_asked_to_retry_and_one_that_disconnects_moves_nobody(
    listing: Listing,
) -> None:
    async with pooled(memory_bytes=ONE, listing=listing, memory_wait_s=0.1) as pool:
        async with pool.lease(TINY):
            with pytest.raises(
                ApiError, match=f"not enough memory for {TWIN} beside {TINY}, which are in use"
            ) as error:
                await asked(pool, TWIN)
            assert (error.value.status, error.value.code, error.value.retry_after) == (503, "no_room", 5.0)
            client = asyncio.create_task(asked(pool, TWIN))
            await until(lambda: figures(pool, TWIN).loading)
            client.cancel()
            await asyncio.wait([client])
        await until(lambda: not figures(pool, TWIN).loading)
        assert in_memory(pool) == [TINY]


@pytest.mark.slow
@awaited
async def test_the_workers_own_memory_statistics_and_refusals_count(sizeless: Listing) -> None:
    async with pooled(memory_bytes=BOTH, listing=sizeless) as pool:
        await asked(pool, TINY, QUESTION)
        await asked(pool, TWIN, QUESTION)
        total = await held_by(pool, TINY, TWIN)
        pool.budget.limit = budget = total - CACHED  # as if they had grown
        await looked(pool, lambda total: total <= budget)
        assert in_memory(pool) == [TINY, TWIN]
        pool.budget.limit = ONE
        await looked(pool, lambda _: in_memory(pool) == [TWIN])
        await asked(pool, TINY, QUESTION)  # the budget has room, but the worker reports too little memory
        assert in_memory(pool) == [TINY]


@pytest.mark.slow
@awaited
async def test_a_model_is_not_unloaded_because_its_worker_is_slow_to_clear_its_cache(
    sizeless: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pooled(memory_bytes=BOTH, listing=sizeless) as pool:
        tiny, _ = await asked(pool, TINY, QUESTION)
        await asked(pool, TWIN, QUESTION)
        total = await held_by(pool, TINY, TWIN)
        await pool.lifecycle.measure_memory()
        pool.budget.limit = budget = total - CACHED
        with monkeypatch.context() as patience:
            patience.setattr(managed_model, "_WORKER_REPLY_S", 0.05)
            stop(tiny)  # as if a busy machine gave it no time
            try:
                await pool.idle_reaper.reap()
                assert in_memory(pool) == [TINY, TWIN]
            finally:
                os.kill(tiny, signal.SIGCONT)
        await looked(pool, lambda total: total <= budget)
        assert in_memory(pool) == [TINY, TWIN]


@pytest.mark.slow
@awaited
async def test_caches_are_cleared_before_a_model_is_unloaded(listing: Listing) -> None:
    tiny, twin = listing()
    twin = msgspec.structs.replace(twin, size_bytes=18_500_000)  # what a worker wants to be left for it, and more
    async with pooled(memory_bytes=BOTH, listing=lambda *folders: [tiny, twin]) as pool:
        await asked(pool, TINY, QUESTION)
        pool.budget.limit = await held_by(pool, TINY) + twin.size_bytes - CACHED
        await asked(pool, TWIN, QUESTION)
        assert in_memory(pool) == [TINY, TWIN]


@asynccontextmanager
async def crowded_by_a_stopped_worker(listing: Listing) -> AsyncIterator[tuple[Pool, int]]:
    """A pool in which the twin fits once the tiny model's worker, which is stopped, has cleared its cache."""
    tiny, twin = listing()
    twin = msgspec.structs.replace(twin, size_bytes=18_500_000)
    async with pooled(memory_bytes=BOTH, listing=lambda *folders: [tiny, twin]) as pool:
        process, _ = await asked(pool, TINY, QUESTION)
        used = await held_by(pool, TINY)
        pool.budget.set_measured(pool.models[TINY], used)
        pool.budget.limit = used + twin.size_bytes - CACHED
        stop(process)
        try:
            yield pool, process
        finally:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


@pytest.mark.slow
@awaited
async def test_a_newcomer_waits_for_a_slow_worker_to_clear_its_cache(
    listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_model, "_WORKER_REPLY_S", 0.05)
    async with crowded_by_a_stopped_worker(listing) as (pool, process):
        newcomer = asyncio.create_task(asked(pool, TWIN, QUESTION))
        await asyncio.wait([newcomer], timeout=0.5)  # the span for which the machine gives the worker no time
        os.kill(process, signal.SIGCONT)
        await newcomer
        assert in_memory(pool) == [TINY, TWIN]


@pytest.mark.slow
@awaited
async def test_a_newcomer_does_not_wait_for_ever_for_a_worker_that_hangs(
    listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_lifecycle, "_CLEAR_S", 0.05)
    async with crowded_by_a_stopped_worker(listing) as (pool, _):
        await asked(pool, TWIN, QUESTION)
        assert in_memory(pool) == [TWIN]


@pytest.mark.slow
@awaited
async def test_a_model_that_can_never_fit_is_refused_with_the_numbers(listing: Listing, sizeless: Listing) -> None:
    async with pooled(memory_bytes=10_000_000, listing=listing) as pool:
        with pytest.raises(ApiError, match=r"takes 13,983,313 bytes, and all models together have 10,000,000") as error:
            await asked(pool, TINY)
        assert (error.value.status, error.value.code, error.value.param) == (507, "out_of_memory", "model")
    async with pooled(memory_bytes=10_000_000, listing=sizeless) as pool:
        with pytest.raises(ApiError, match=r"13\.3 MiB for its weights") as error:
            await asked(pool, TINY)
        assert (error.value.status, error.value.code) == (507, "out_of_memory")
        assert in_memory(pool) == []


@awaited
async def test_a_model_stays_while_another_that_is_being_unloaded_frees_enough() -> None:
    async with pooled(worker_command=MOCK, memory_bytes=10) as pool:
        await asked(pool, "mock")
        await asked(pool, "mock:step_ms=1")
        models = staying, leaving = [pool.models[id] for id in ("mock", "mock:step_ms=1")]
        for model in models:
            pool.budget.set_measured(model, 6)
        assert pool.budget.surplus() == [staying]
        unload = pool.lifecycle.unload(leaving)
        assert pool.budget.surplus() == [leaving]
        await unload
        assert pool.budget.surplus() == []


@awaited
async def test_without_a_budget_models_give_way_when_a_worker_finds_no_memory(tmp_path: Path) -> None:
    command = in_a_row(tmp_path, "", "", "--fault failed-load:code=out_of_memory", "")
    async with pooled(worker_command=command) as pool:
        oldest, newer, newest = "mock:step_ms=1", "mock", "mock:step_ms=2"
        await asked(pool, oldest)
        await asked(pool, newer)
        await asked(pool, newest)
        assert in_memory(pool) == [newer, newest]
        assert started(tmp_path) == 4


@awaited
async def test_without_a_budget_a_model_too_large_for_the_machine_is_refused(tmp_path: Path) -> None:
    command = in_a_row(tmp_path, "", "--fault failed-load:code=out_of_memory")
    async with pooled(worker_command=command) as pool:
        await asked(pool, "mock")
        with pytest.raises(ApiError) as error:
            await asked(pool, "mock:step_ms=1")
        assert (error.value.status, error.value.code) == (507, "out_of_memory")


@awaited
async def test_models_that_do_not_fit_together_are_reported_at_the_start(tmp_path: Path) -> None:
    command = in_a_row(tmp_path, "", "--fault failed-load:code=out_of_memory")
    problem = "mock:step_ms=1 cannot be loaded: there is not enough memory for mock:step_ms=1 beside mock"
    with pytest.raises(ApiError, match=problem):
        async with pooled("mock", "mock:step_ms=1", worker_command=command, preload=True):
            pass
