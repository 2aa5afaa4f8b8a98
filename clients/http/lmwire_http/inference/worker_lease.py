"""A worker for a request that generates no text."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..errors import Rename, told, written
from ..http.context import Call
from ..pool import Lease


@asynccontextmanager
async def lease_for(call: Call, model: str, *, rename: Rename) -> AsyncIterator[Lease]:
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
        async with call.service.pool.lease(model, client=call.client, rows=1) as lease:
            call.model = lease.name
            call.service.metrics.queued(lease.name, lease.queued_s)
            with written(rename):
                yield lease
