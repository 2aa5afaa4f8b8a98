"""A worker for a request that generates no text."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lmwire import AsyncWorker

from ..call import Call
from ..failures import Rename, told, written


@asynccontextmanager
async def worker_for(call: Call, model: str, *, rename: Rename) -> AsyncIterator[AsyncWorker]:
    """A worker that has the model, for as long as the block lasts.

    Args:
        call: For whom.
        model: The model's name, as the client gave it.
        rename: Names the fields as the client does.

    Raises:
        ApiError: there is none, or what is asked of it fails.
    """
    call.model = model
    with told(rename):
        async with call.service.pool.lease(model) as lease:
            call.model = lease.name
            with written(rename):
                yield lease.worker
