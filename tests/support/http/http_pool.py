"""A pool of workers for a test: the HTTP server's own, without the server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from time import monotonic
from typing import Any, ParamSpec

from lmwire import DeviceMemory, LocalModel, MessageDict, device_memory, local_models
from lmwire_http.pool import ModelStatus, Pool
from lmwire_http.settings import Settings
from support.process.worker_process import SECONDS

MOCK = (sys.executable, "-P", "-m", "lmwire_worker", "--mock")
"""A worker whose one model is `mock`."""

P = ParamSpec("P")


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def awaited(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run a coroutine to its end."""

    @wraps(test)
    def run(*arguments: P.args, **keywords: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **keywords), SECONDS))

    return run


@asynccontextmanager
async def pooled(
    *models: str,
    listing: Callable[..., Sequence[LocalModel]] = local_models,
    measure_device: Callable[[], DeviceMemory] = device_memory,
    clock: Callable[[], float] = monotonic,
    **settings: Any,
) -> AsyncIterator[Pool]:
    """A pool that is ended with the block."""
    pool = Pool(Settings(models=models, **settings), listing=listing, measure_device=measure_device, clock=clock)
    try:
        await pool.start()
        yield pool
    finally:
        await pool.close()


async def asked(pool: Pool, model: str, text: str = "to be or not", prompt: Sequence[object] = ()) -> tuple[int, str]:
    """The process that answered, and its answer."""
    async with pool.lease(model, prompt=prompt) as lease:
        return lease.worker.pid, await lease.worker.chat([said(text)], max_tokens=len(text.split())).text()


def said(text: str) -> MessageDict:
    """A user's message."""
    return {"role": "user", "content": text}


def figures(pool: Pool, id: str) -> ModelStatus:
    """Return the pool's status of a model."""
    return next(resident for resident in pool.statuses() if resident.id == id)


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = monotonic() + SECONDS
    while not condition():
        assert monotonic() < deadline, "it never came to that"
        await asyncio.sleep(0.005)


def local_model(id: str, **fields: Any) -> LocalModel:
    """A model as a listing has it."""
    described: dict[str, Any] = {
        "path": f"/models/{id}",
        "aliases": [],
        "size_bytes": 1000,
        "model_type": "qwen3",
        "bits": None,
        "context_len": 4096,
        "problem": None,
    }
    return LocalModel(id=id, **described | fields)
