"""A generation for an HTTP request: started, measured, counted, and cancelled if the request ends early."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Final, TypeAlias

import msgspec

from lmwire import Answer, AsyncStream, AsyncWorker, MessageDict, TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ..errors import RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext
from .new_media import check_new_media

Batch: TypeAlias = list[TokenDelta | ToolCallDelta]
"""Deltas that came together."""
SamplingOptions: TypeAlias = dict[str, Any]
"""Sampling fields of a request, by the worker's names."""
_DEFAULT_TEMPERATURE: Final = 1.0
"""Default of OpenAI and Anthropic, which clients expect. The worker's default is 0."""


class Generation:
    """A running generation. Iterate over it, or take the whole answers.

    Args:
        context: The request's context.
        stream: The worker's stream.
        model: The model that the worker has loaded.
    """

    def __init__(self, context: RequestContext, stream: AsyncStream, model: events.ModelDone) -> None:
        self._context, self._stream = context, stream
        self.loaded_model = model
        """The model that generates."""
        self._finished = False

    async def __aiter__(self) -> AsyncIterator[Batch]:
        """Yield the deltas as they come, all available ones together.

        Raises:
            ApiError: The generation has failed.
        """
        first_token, between = self._context.state.metrics.latency_histograms(self._context.model)
        before = None
        while batch := await self._stream.read_available():
            now = monotonic()
            if before is None:
                first_token.observe(now - self._context.started_at)
            elif count := sum(len(delta.token_ids) for delta in batch):
                between.observe((now - before) / count)
            before = now
            yield batch
        self._finished = True
        self._context.record_usage(self.result.usage)

    async def answers(self) -> list[Answer]:
        """Read the stream to its end, unless that is done, and return the whole answers."""
        if not self._finished:
            async for _ in self:
                pass
        return await self._stream.answers()

    @property
    def result(self) -> events.ResultDone:
        """The result of the finished generation."""
        return self._stream.result


def _sampling_defaults(model: events.ModelDone) -> SamplingOptions:
    """Return the model's own defaults, if they were loaded, and the temperature of OpenAI and Anthropic without."""
    own = model.sampling_defaults
    return {"temperature": _DEFAULT_TEMPERATURE} | (msgspec.to_builtins(own) if own else {})


def with_defaults(options: Any, defaults: SamplingOptions) -> Any:
    """Return a request's options, with the sampling defaults that it does not set.

    Args:
        options: Options of the client library; `ChatOptions` or `GenerateOptions`.
        defaults: The sampling defaults.
    """
    return {**defaults, **options}


@asynccontextmanager
async def run_generation(
    context: RequestContext,
    model: str,
    start: Callable[[AsyncWorker, SamplingOptions], AsyncStream],
    *,
    prompt: Sequence[object],
    rename: RenameField,
    prepare: Callable[[AsyncWorker], Awaitable[None]] | None = None,
    n: int = 1,
    checked_messages: Sequence[MessageDict] = (),
) -> AsyncGenerator[Generation]:
    """Start a generation, and cancel it if the block ends early.

    Args:
        context: The request's context.
        model: The model's name in the request.
        start: Sends the command, with the sampling defaults where the request sets none.
        prompt: The prompt's parts. Requests with the same first parts go to the same worker, which has them cached.
        rename: Maps field paths to those of the client.
        prepare: Called before `start`, with the same worker.
        n: Number of answers.
        checked_messages: Messages whose new images and sounds the model must take.

    Raises:
        ApiError: The generation cannot start, or has failed.
    """
    context.model = model
    with translate_worker_errors(rename):
        async with context.state.pool.lease(model, prompt=prompt, client=context.client, rows=n) as lease:
            context.model = lease.model_id
            context.state.metrics.observe_queue_time(lease.model_id, lease.queued_s)
            check_new_media(checked_messages, lease.model.capabilities, rename)
            if prepare:
                await prepare(lease.worker)
            with translate_value_errors(rename):
                stream = start(lease.worker, _sampling_defaults(lease.model))
            stream.when_ended(lease.release)  # other requests need not wait for a client that reads slowly
            async with stream:
                yield Generation(context, stream, lease.model)
