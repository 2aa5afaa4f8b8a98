"""A generation for an HTTP request: started, measured, counted, and cancelled if the request ends early."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from time import monotonic
from typing import Any, TypeAlias

from lmwire import Answer, AsyncStream, TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ..errors import RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext
from ..pool import Lease
from ..pool.status import OnProgress
from .default_options import with_generation_defaults

Batch: TypeAlias = list[TokenDelta | ToolCallDelta]
"""Deltas that came together."""


class Generation:
    """A running generation. Iterate over it, or take the whole answers.

    Args:
        context: The request's context.
        stream: The worker's stream.
        model: The model that the worker has loaded.
        options: The options with which it generates, defaults included.
        on_first_token: Called when the first token comes.
    """

    def __init__(
        self,
        context: RequestContext,
        stream: AsyncStream,
        model: events.ModelDone,
        options: dict[str, Any],
        on_first_token: Callable[[], None],
    ) -> None:
        self._context, self._stream, self._on_first_token = context, stream, on_first_token
        self.options = options
        self.loaded_model = model
        """The model that generates."""
        self.started_at = monotonic()
        """Time at which a worker with the model received the request, by `time.monotonic`."""
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
                self._on_first_token()
                first_token.observe(now - self._context.started_at)
                self._context.first_token_s = self._context.first_token_s or now - self._context.started_at
            elif count := sum(len(delta.token_ids) for delta in batch):
                between.observe((now - before) / count)
            before = now
            yield batch
        self._finished = True
        self._context.record_result(self.result)

    async def answers(self) -> list[Answer]:
        """Read the stream to its end, unless that is done, and return the whole answers."""
        if not self._finished:
            async for _ in self:
                pass
        return await self._stream.answers()

    def cancel(self) -> None:
        """End the generation where it is. It can still be read to its end."""
        self._stream.cancel()

    @property
    def result(self) -> events.ResultDone:
        """The result of the finished generation."""
        return self._stream.result


@asynccontextmanager
async def run_generation(
    context: RequestContext,
    model: str,
    options: dict[str, Any],
    start: Callable[[Lease, dict[str, Any]], Awaitable[AsyncStream]],
    *,
    prompt: Sequence[object],
    rename: RenameField,
    max_tokens: int | None = None,
) -> AsyncGenerator[Generation]:
    """Start a generation, and cancel it if the block ends early.

    Args:
        context: The request's context.
        model: The model's name in the request.
        options: The options that the request sets.
        start: Sends the command to the leased worker, with all options.
        prompt: The prompt's parts. Requests with the same first parts go to the same worker, which has them cached.
        rename: Maps field paths to those of the client.
        max_tokens: The API's own limit of tokens; None if it has none.

    Raises:
        ApiError: The generation cannot start, or has failed.
    """
    context.model = model
    with translate_worker_errors(rename):
        async with context.state.pool.lease(
            model, prompt=prompt, client=context.client, rows=options.get("n", 1)
        ) as lease:
            context.record_lease(lease)
            complete = with_generation_defaults(options, context.state.settings, lease.model, max_tokens)
            with ExitStack() as prefill:
                show = prefill.enter_context(context.state.show_progress(lease.model_id))
                complete["on_progress"] = _call_each(show, complete.get("on_progress"))
                with translate_value_errors(rename):
                    stream = await start(lease, complete)
                stream.when_ended(lease.release)  # other requests need not wait for a client that reads slowly
                async with stream:
                    yield Generation(context, stream, lease.model, complete, on_first_token=prefill.close)


def _call_each(show: OnProgress, other: OnProgress | None) -> OnProgress:
    """Return a function that calls both functions with each progress event."""
    if other is None:
        return show

    def call(event: events.Progress) -> None:
        show(event)
        other(event)

    return call
