"""POST /v1/completions. Each prompt of a request is a request to a worker, and they run together."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from typing import Any, Final, TypeAlias

from lmwire import Answer, AsyncStream
from lmwire_protocol import events

from ...http.context import RequestContext
from ...http.endpoint import Json, Reply, Streamable, endpoint
from ...inference.generation import Batch, Generation, merge_streams, run_generation
from ...inference.options import TEXT_ALIASES, renamed
from ...pool import Lease
from ..request_fields import usage_chunk, usage_so_far
from ..response_fields import ProgressTracker, new_identity, total_usage
from .request import CompletionRequest, client_field, compares_answers, completion_options, prompts_of
from .response import Completion, best_answers, make_choices
from .stream import CompletionStreamEncoder

_NO_OPTIONS: Final[Mapping[str, Any]] = {}
_MAX_TOKENS: Final = 16
"""OpenAI's default."""

StreamItem: TypeAlias = tuple[int, Batch | events.ResultDone]
"""A prompt's number with its next deltas, or with its result."""
PromptResult: TypeAlias = tuple[int, list[Answer], events.ResultDone]
"""A prompt's number, its answers and its token counts."""


class PromptBatch:
    """The prompts of one request.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: CompletionRequest) -> None:
        self._context, self._body = context, body
        self._prompts = prompts_of(body)
        self._options: Any = completion_options(body)
        self.echo_texts = [prompt if body.echo and isinstance(prompt, str) else "" for prompt in self._prompts]
        """Text before each prompt's choices: the prompt if the request sets `echo`, else empty."""

    @property
    def n(self) -> int:
        """Number of choices for each prompt."""
        return self._body.n or 1

    async def stream(self, progress: ProgressTracker) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of all prompts as they come.

        Args:
            progress: Tracks the progress of the prompts.

        Raises:
            ApiError: A generation has failed.
        """
        streams = merge_streams(partial(self._stream, progress), len(self._prompts))
        async with aclosing(streams) as parts:
            async for part in parts:
                yield part

    async def answers(self) -> list[PromptResult]:
        """Return the results of all prompts, in their order.

        Raises:
            ApiError: A generation has failed.
        """
        async with aclosing(merge_streams(self._answers, len(self._prompts))) as wholes:
            return sorted([whole async for whole in wholes], key=lambda whole: whole[0])

    async def _stream(self, progress: ProgressTracker, number: int) -> AsyncIterator[StreamItem]:
        async with self._generation(number, progress.options(number)) as generation:
            async for batch in generation:
                yield number, batch
            yield number, generation.result

    async def _answers(self, number: int) -> AsyncIterator[PromptResult]:
        async with self._generation(number) as generation:
            answers = await generation.answers()
            if compares_answers(self._body):
                answers = best_answers(answers, self.n)
            yield number, answers, generation.result

    def _generation(
        self, number: int, progress: Mapping[str, Any] = _NO_OPTIONS
    ) -> AbstractAsyncContextManager[Generation]:
        prompt = self._prompts[number]

        async def start(lease: Lease, options: dict[str, Any]) -> AsyncStream:
            return lease.worker.generate(prompt, **options)

        return run_generation(
            self._context,
            self._body.model,
            {**self._options, **progress},
            start,
            prompt=[prompt],
            rename=partial(client_field, self._body, number),
            max_tokens=_MAX_TOKENS,
        )


class CompletionGeneration(Streamable[CompletionRequest]):
    """The continuations of one request's prompts."""

    def __init__(self, context: RequestContext, body: CompletionRequest) -> None:
        super().__init__(context, body)
        self._prompts = PromptBatch(context, body)
        self._identity = new_identity("cmpl", body.model, context.state.settings)
        so_far = usage_so_far(body)
        self._encoder = CompletionStreamEncoder(
            self._identity,
            n=self._prompts.n,
            before=self._prompts.echo_texts,
            usage=usage_chunk(body, context.state.settings),
            so_far=so_far,
        )
        self._progress = ProgressTracker(
            is_wanted=bool(body.return_progress), encode=self._encoder.waiting, so_far=so_far
        )
        self.waiting = self._progress.waiting

    async def whole(self) -> Json:
        """Return the whole completion."""
        results = await self._prompts.answers()
        choices = [
            choice
            for number, answers, _ in results
            for choice in make_choices(
                answers,
                first=number * self._prompts.n,
                before=self._prompts.echo_texts[number],
                logprobs=self._body.logprobs is not None,
            )
        ]
        usage = total_usage(*(result for _, _, result in results))
        return Json(Completion(**self._identity._asdict(), choices=choices, usage=usage))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the completion's chunks as they come."""
        encoder = self._encoder
        async with aclosing(self._prompts.stream(self._progress)) as items:
            async for number, item in items:
                frames = encoder.deltas(number, item) if isinstance(item, list) else encoder.finish_prompt(number, item)
                if frames := self._progress.begin_answer(number) + frames:
                    yield frames
        yield encoder.end()


@endpoint(
    "POST",
    "/v1/completions",
    aliases={**TEXT_ALIASES, **dict.fromkeys(("max_completion_tokens", "max_length"), renamed("max_tokens"))},
    response_type=Completion,
    event_type=Completion,
)
async def create_completion(context: RequestContext, body: CompletionRequest) -> Reply:
    """Continue prompts."""
    generation = await context.beside_loop(CompletionGeneration, context, body)
    return await generation.reply(stream=body.stream)
