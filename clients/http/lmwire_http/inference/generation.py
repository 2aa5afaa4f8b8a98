"""Work of a leased worker for an HTTP request: started, measured, counted, and cancelled if the request ends early."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from itertools import islice
from time import monotonic
from typing import Any, Final, Literal, TypeAlias, TypeVar

from lmwire import Answer, AsyncStream, TokenDelta, ToolCallDelta
from lmwire_protocol import events

from ..errors import ApiError, RenameField, translate_value_errors, translate_worker_errors
from ..http.context import RequestContext
from ..pool import Lease
from ..pool.status import OnProgress
from .options import with_generation_defaults

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
_RETRY_S = 1.0
_ADVICE: Final = {
    "embed": "makes no embeddings; load an embedding model, such as mlx-community/Qwen3-Embedding-0.6B-4bit-DWQ",
    "transcribe": "transcribes no speech; load a speech model, such as mlx-community/whisper-large-v3-turbo",
    "speak": "does not speak; load a model that does, such as mlx-community/Qwen3-TTS-12Hz-0.6B-CustomVoice-bf16",
}
"""For each capability, what a model without it lacks, and which kind of model to load instead."""
Batch: TypeAlias = list[TokenDelta | ToolCallDelta]
"""Deltas that came together."""
T = TypeVar("T")

STREAMS_AT_ONCE: Final = 32
"""Most streams of one request that run together, so that other requests can run and those that wait take no memory."""


def finish_reason(reason: str) -> FinishReason:
    """Return the worker's finish reason in the clients' terms.

    All limits are `length` to the clients: `max_tokens`, the context length, `timeout_ms` and memory.

    Raises:
        ApiError: The server has cancelled the answer.
    """
    match reason:
        case "stop" | "tool_calls":
            return reason
        case "cancelled":
            message = "the answer was cancelled before its end, because the server ends or unloads the model"
            raise ApiError(503, message, code="cancelled", retry_after=_RETRY_S)
        case _:
            return "length"


def check_capability(lease: Lease, capability: str, name: str) -> None:
    """Check that the leased worker's model has a capability.

    Args:
        lease: The lease.
        capability: The capability: `embed`, `transcribe` or `speak`.
        name: The model's name in the request.

    Raises:
        ApiError: The model lacks it.
    """
    if capability not in lease.model.capabilities:
        message = f"model: {name[:200]} {_ADVICE[capability]}"
        raise ApiError(501, message, code="unsupported", param="model")


def _check_generates(lease: Lease, capability: str, name: str) -> None:
    """Check that the leased worker's model is none that makes vectors alone.

    Args:
        lease: The lease.
        capability: What it must do: `chat` or `generate`.
        name: The model's name in the request.

    Raises:
        ApiError: It makes vectors alone.
    """
    capabilities = lease.model.capabilities
    if "embed" in capabilities and capability not in capabilities:
        message = f'"{name[:200]}" does not support {capability}: it makes vectors; load a model that generates text'
        raise ApiError(400, message, code="unsupported", param="model")


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
    capability: str = "generate",
    has_media: bool = False,
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
        capability: What the model must do: `generate` or `chat`.
        has_media: Whether the prompt has images or sounds.
        max_tokens: The API's own limit of tokens; None if it has none.

    Raises:
        ApiError: The generation cannot start, or has failed.
    """
    context.model = model
    with translate_worker_errors(rename):
        async with context.state.pool.lease(
            model, prompt=prompt, client=context.client, rows=options.get("n", 1), has_media=has_media
        ) as lease:
            context.record_lease(lease)
            _check_generates(lease, capability, model)
            complete = with_generation_defaults(options, context.state.settings, lease.model, max_tokens)
            with ExitStack() as prefill:
                prefill.callback(lease.media_decoded)
                show = prefill.enter_context(context.state.show_progress(lease.model_id))
                others = (complete["on_progress"],) if "on_progress" in complete else ()
                complete["on_progress"] = _call_each(show, lambda _: lease.media_decoded(), *others)
                with translate_value_errors(rename):
                    stream = await start(lease, complete)
                stream.when_ended(lease.release)  # other requests need not wait for a client that reads slowly
                async with stream:
                    yield Generation(context, stream, lease.model, complete, on_first_token=prefill.close)


def _call_each(*functions: OnProgress) -> OnProgress:
    """Return a function that calls these with each progress event."""

    def call(event: events.Progress) -> None:
        for function in functions:
            function(event)

    return call


async def merge_streams(
    open_stream: Callable[[int], AsyncIterator[T]], count: int, at_once: int = STREAMS_AT_ONCE
) -> AsyncGenerator[T, None]:
    """Yield the items of several streams as they come. If one fails, or this iterator is closed, cancel the others.

    Args:
        open_stream: Returns the stream with a number. It is called when the stream's turn has come.
        count: Number of streams.
        at_once: Most streams that run together.
    """
    if count == 1:
        async for item in open_stream(0):
            yield item
        return
    arrivals: asyncio.Queue[T | asyncio.Task[None]] = asyncio.Queue()
    readers: set[asyncio.Task[None]] = set()
    waiting = iter(range(count))

    async def read(number: int) -> None:
        async for item in open_stream(number):
            arrivals.put_nowait(item)

    def start(most: int) -> int:
        """Start the next readers, and return their number."""
        started = [asyncio.create_task(read(number)) for number in islice(waiting, most)]
        for reader in started:
            readers.add(reader)
            reader.add_done_callback(readers.discard)
            reader.add_done_callback(arrivals.put_nowait)
        return len(started)

    try:
        running = start(at_once)
        while running:
            arrival = await arrivals.get()
            if isinstance(arrival, asyncio.Task):
                arrival.result()
                running += start(1) - 1
            else:
                yield arrival
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
