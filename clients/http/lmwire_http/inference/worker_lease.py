"""A worker for a request that generates no text."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..errors import RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext
from ..pool import Lease


@asynccontextmanager
async def lease_for(context: RequestContext, model: str, *, rename: RenameField) -> AsyncIterator[Lease]:
    """A worker that has the model, for as long as the block lasts.

    Args:
        context: For whom.
        model: The model's name, as the client gave it.
        rename: Names the fields as the client does.

    Raises:
        ApiError: there is none, or what is asked of it fails.
    """
    context.model = model
    with translate_worker_errors(rename):
        async with context.state.pool.lease(model, client=context.client, rows=1) as lease:
            context.model = lease.model_id
            context.state.metrics.observe_queue_time(lease.model_id, lease.queued_s)
            with translate_value_errors(rename):
                yield lease
