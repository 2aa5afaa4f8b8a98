"""Leases of workers for requests that generate no text."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ..errors import RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext
from ..pool import Lease


@asynccontextmanager
async def lease_worker(
    context: RequestContext, model: str, *, rename: RenameField, has_media: bool = False
) -> AsyncGenerator[Lease]:
    """Lease a worker with the model while the block runs.

    Args:
        context: The request's context.
        model: The model's name in the request.
        rename: Maps field paths to those of the client.
        has_media: Whether the worker must decode images or sounds.

    Raises:
        ApiError: No worker is available, or its work has failed.
    """
    context.model = model
    with translate_worker_errors(rename):
        async with context.state.pool.lease(model, client=context.client, rows=1, has_media=has_media) as lease:
            context.record_lease(lease)
            with translate_value_errors(rename):
                yield lease
