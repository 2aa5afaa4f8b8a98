"""A generation on some worker of a model, for a context: started, timed, counted, and cancelled when it is left."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import TypeAlias

from lmwire import Answer, AsyncStream, AsyncWorker, CallPiece, Piece
from lmwire_protocol import events

from ..errors import RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext

Batch: TypeAlias = list[Piece | CallPiece]
"""Pieces that came together."""


class Generation:
    """What comes of it: iterate over it, or take the whole answers."""

    def __init__(self, context: RequestContext, stream: AsyncStream, model: events.ModelDone) -> None:
        self._context, self._stream = context, stream
        self.model = model
        """What answers."""
        self._read = False

    async def __aiter__(self) -> AsyncIterator[Batch]:
        """What came, all that is there at once together. Raises ApiError."""
        first_token, between = self._context.state.metrics.latency_histograms(self._context.model)
        before = None
        while batch := await self._stream.batch():
            now = monotonic()
            if before is None:
                first_token.observe(now - self._context.started_at)
            elif count := sum(len(piece.token_ids) for piece in batch):
                between.observe((now - before) / count)
            before = now
            yield batch
        self._read = True
        self._context.record_usage(self.result.usage)

    async def answers(self) -> list[Answer]:
        """Reads to the end, if nobody has, and returns the whole answers."""
        if not self._read:
            async for _ in self:
                pass
        return await self._stream.answers()

    @property
    def result(self) -> events.ResultDone:
        """How it ended, once it has."""
        return self._stream.result


@asynccontextmanager
async def generation(
    context: RequestContext,
    model: str,
    start: Callable[[AsyncWorker], AsyncStream],
    *,
    prompt: Sequence[object],
    rename: RenameField,
    n: int = 1,
) -> AsyncIterator[Generation]:
    """Starts a generation. Leaving the block early cancels it.

    Args:
        context: For whom.
        model: The model's name, as the client gave it.
        start: Sends the request, as `lambda worker: worker.chat(messages)`.
        prompt: What the model reads, in parts: requests with the same first parts go to the same worker, which has
            them cached.
        rename: Names the fields as the client does.
        n: Answers that are asked for.

    Raises:
        ApiError: it cannot be, or fails.
    """
    context.model = model
    with translate_worker_errors(rename):
        async with context.state.pool.lease(model, prompt=prompt, client=context.client, rows=n) as lease:
            context.model = lease.model_id
            context.state.metrics.observe_queue_time(lease.model_id, lease.queued_s)
            with translate_value_errors(rename):
                stream = start(lease.worker)
            stream.when_ended(lease.release)  # a client that reads slowly holds up nobody
            async with stream:
                yield Generation(context, stream, lease.model)
