"""Clients that come and go, workers that are killed, and models too many for their memory: nobody waits for ever."""

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from lmwire import AsyncWorker, WorkerLost
from lmwire_http.errors import ApiError
from lmwire_http.pool import Pool
from lmwire_http.pool import pool as pool_module
from lmwire_http.pool.managed_model import ManagedModel
from support.http.http_pool import MOCK, awaited, local_model, pooled, said, until
from support.nightly import nightly_but
from support.process.worker_thread import kill, spawn

pytestmark = pytest.mark.slow

MODELS = [local_model(f"made-up/{size}", size_bytes=size) for size in (3, 4, 5, 6, 9)]
BUDGET = 10
ANY_MODEL = {"rules": [{"match": {"cmd": "load"}, "reply": {"delay_ms": 20}}]}


@pytest.fixture
def sized_mocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the pool start mock workers that count as using the memory in the listing."""
    (scenario := tmp_path / "any.json").write_text(json.dumps(ANY_MODEL))

    async def memory_bytes(model: ManagedModel, within_s: float | None = None) -> int:
        return model.spec.size_bytes

    monkeypatch.setattr(ManagedModel, "memory_bytes", memory_bytes)
    command = [*MOCK, "--scenario", str(scenario)]
    monkeypatch.setattr(pool_module, "make_worker", lambda *_: AsyncWorker(command, spawn=spawn))


async def come_and_go(pool: Pool, chance: random.Random) -> str:
    """One request: what became of it."""
    try:
        async with (
            asyncio.timeout(chance.choice((0.02, 0.2, None, None))),
            pool.lease(chance.choice(MODELS).id) as lease,
        ):
            assert_within_budget(pool)
            if chance.random() < 0.05:
                with suppress(ProcessLookupError):
                    kill(lease.worker.pid)
            return await lease.worker.chat([said("a b")], max_tokens=2).text()
    except ApiError as error:
        return error.code
    except (WorkerLost, TimeoutError) as error:
        return type(error).__name__


def assert_within_budget(pool: Pool) -> None:
    """Check that the models in memory, without those being unloaded, fit into the budget."""
    placed = [model for model in pool.budget.holders if not model.unload_task]
    assert sum(model.spec.size_bytes for model in placed) <= BUDGET


@pytest.mark.parametrize("seed", nightly_but({1}, [1, 2]))
@awaited
async def test_every_request_ends_and_every_model_does(seed: int, sized_mocks: None) -> None:
    chance, ends = random.Random(seed), Counter[str]()
    async with pooled(listing=lambda *_: MODELS, memory_bytes=BUDGET, memory_wait_s=1, idle_s=0.2) as pool:

        async def client() -> None:
            for _ in range(4):
                ends[await come_and_go(pool, chance)] += 1

        await asyncio.gather(*(client() for _ in range(15)))
        assert ends["a b"] > 0
        expected = {"a b", "TimeoutError", "WorkerExited", "worker_lost", "worker_unavailable", "no_room"}
        assert set(ends) <= expected
        await until(lambda: not pool.budget.holders)
        assert [model.waiting for model in pool.statuses()] == [0] * len(pool.statuses())
