"""The memory of the machine: the default limit of all models, and what is free before a worker starts."""

import asyncio
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
import pytest

from lmwire import AsyncWorker, DeviceMemory, LmwireError, LocalModel, device_memory, local_models
from lmwire_http.pool import Pool, memory_budget, replica
from lmwire_http.pool import pool as pool_module
from lmwire_http.settings import Settings
from lmwire_worker.models.device_memory import default_budget
from support.http.http_pool import MOCK, asked, awaited, pooled
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

Listing: TypeAlias = Callable[..., Sequence[LocalModel]]

TINY, TWIN = "builtin:tiny", "made-up/twin"
ONE = 24_000_000
"""Bytes that hold one of the models with its caches."""
PLENTY = 10**9
"""Bytes for both models."""


@pytest.fixture(autouse=True)
def workers_as_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each worker a process: on a thread, it would report the memory of all models in this one."""
    monkeypatch.setattr(replica, "AsyncWorker", AsyncWorker)


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Listing:
    """Two models: the built-in one, and a copy of it."""
    [tiny] = [model for model in local_models() if model.id == TINY]
    copy = shutil.copytree(tiny.path, tmp_path_factory.mktemp("models") / "twin")
    twin = msgspec.structs.replace(tiny, id=TWIN, path=str(copy))
    return lambda *folders: [tiny, twin]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models for which a worker was started."""
    started: list[str] = []
    make_worker = pool_module.make_worker

    def make(settings: Settings, model: str, memory: int | None) -> object:
        started.append(model)
        return make_worker(settings, model, memory)

    monkeypatch.setattr(pool_module, "make_worker", make)
    return started


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, workers_as_processes: None) -> list[list[str]]:
    """The command lines of the workers that were started."""
    started: list[list[str]] = []
    make = replica.AsyncWorker

    def start(command: Sequence[str], **keywords: Any) -> AsyncWorker:
        started.append([*command])
        return make(command, **keywords)

    monkeypatch.setattr(replica, "AsyncWorker", start)
    return started


def in_memory(pool: Pool) -> set[str]:
    return {model.id for model in pool.statuses() if model.loaded}


def test_models_may_take_as_much_as_a_worker_takes_by_default() -> None:
    memory = device_memory()
    assert memory.budget_bytes == default_budget()
    assert memory.free_bytes > 0


@awaited
async def test_without_a_limit_the_models_share_that(listing: Listing, commands: list[list[str]]) -> None:
    async with pooled(listing=listing) as pool:
        await asked(pool, TINY)
        assert "--memory-limit" not in commands[0]  # alone, a worker keeps to the same by default
        assert pool.budget.limit is None, "the first load need not wait for a measurement"
        await asked(pool, TWIN)
        assert pool.budget.limit == default_budget()
        *_, option, limit_bytes = commands[1]
        assert option == "--memory-limit"
        limit = int(limit_bytes)
        assert default_budget() - 2 * ONE < limit < default_budget()


@awaited
async def test_no_limit_is_set_if_that_is_wanted_or_if_the_worker_may_run_elsewhere(
    listing: Listing, commands: list[list[str]]
) -> None:
    def measure() -> DeviceMemory:
        raise AssertionError("nothing needs it")

    async with pooled(listing=listing, measure_device=measure, memory_bytes="none") as pool:
        for name in (TINY, TWIN):
            await asked(pool, name)
        assert len(commands) == 2
        assert not any("--memory-limit" in command for command in commands)
    async with pooled(worker_command=MOCK, measure_device=measure) as pool:
        await asked(pool, "mock")
        await asked(pool, "mock:load_steps=2")
        assert pool.budget.limit is None


@awaited
async def test_the_default_limit_makes_models_give_way(listing: Listing, starts: list[str]) -> None:
    memory = DeviceMemory(budget_bytes=30_000_000, free_bytes=PLENTY)
    async with pooled(listing=listing, measure_device=lambda: memory) as pool:
        for name in (TINY, TWIN, TINY):
            await asked(pool, name)
            assert in_memory(pool) == {name}
        assert starts == [TINY, TWIN, TINY]


@awaited
async def test_a_machine_that_cannot_be_measured_has_no_limit(listing: Listing, commands: list[list[str]]) -> None:
    def measure() -> DeviceMemory:
        raise LmwireError("the memory of this machine cannot be measured: no device")

    async with pooled(listing=listing, measure_device=measure) as pool:
        for name in (TINY, TWIN):
            await asked(pool, name)
        assert len(commands) == 2
        assert not any("--memory-limit" in command for command in commands)


@awaited
async def test_two_first_models_at_once_share_the_limit(listing: Listing) -> None:
    memory = DeviceMemory(budget_bytes=30_000_000, free_bytes=PLENTY)
    async with pooled(listing=listing, measure_device=lambda: memory) as pool:
        (_, one), (_, other) = await asyncio.gather(asked(pool, TINY), asked(pool, TWIN))
        assert one == other
        assert len(in_memory(pool)) == 1


def replaying(*free: int) -> Callable[[], DeviceMemory]:
    """Return a function that measures these numbers of free bytes, one after the other; the last one repeats."""
    remaining: Iterator[int] = iter(free)

    def measure() -> DeviceMemory:
        return DeviceMemory(budget_bytes=PLENTY, free_bytes=next(remaining, free[-1]))

    return measure


@awaited
async def test_a_worker_starts_when_the_memory_of_an_unloaded_model_is_free_again(
    listing: Listing, starts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_budget, "_POLL_S", 0.01)
    monkeypatch.setattr(memory_budget, "_RELEASE_S", SECONDS)
    seen: list[tuple[int, int]] = []
    free = replaying(PLENTY, 1_000_000, 1_000_000, 15_000_000, PLENTY)

    def measure() -> DeviceMemory:
        memory = free()
        seen.append((memory.free_bytes, len(starts)))
        return memory

    async with pooled(listing=listing, measure_device=measure) as pool:
        await asked(pool, TINY)
        await asked(pool, TWIN)
        assert in_memory(pool) == {TWIN}
        assert starts == [TINY, TWIN]
    # The limit, the shortage before the switch, and three readings until the memory is free, all before the start.
    assert seen == [(PLENTY, 1), (1_000_000, 1), (1_000_000, 1), (15_000_000, 1), (PLENTY, 1)]


@awaited
async def test_a_worker_decides_if_the_memory_does_not_become_free(
    listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_budget, "_RELEASE_S", 0.05)
    async with pooled(listing=listing, measure_device=replaying(PLENTY, 0)) as pool:
        await asked(pool, TINY)
        await asked(pool, TWIN)
        assert in_memory(pool) == {TWIN}


@awaited
async def test_models_stay_beside_one_for_which_the_device_has_memory(listing: Listing) -> None:
    async with pooled(listing=listing, measure_device=replaying(PLENTY)) as pool:
        await asked(pool, TINY)
        await asked(pool, TWIN)
        assert in_memory(pool) == {TINY, TWIN}
