"""POST /v1/completions."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from ...http.context import RequestContext
from ...http.endpoint import Endpoint, Json, Reply, reply_with
from ...inference.options import SAMPLING_ALIASES, renamed
from ..generation_params import usage_chunk, usage_so_far
from ..ids import new_identity
from ..prompt_progress import ProgressTracker
from ..usage import total_usage
from .prompt_batch import PromptBatch
from .request_schema import CompletionRequest
from .response_schema import Completion, make_choices
from .stream_encoder import CompletionStreamEncoder


class CompletionGeneration:
    """The continuations of one request's prompts.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: CompletionRequest) -> None:
        self._context, self._body = context, body
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
        usage = total_usage(*(usage for _, _, usage in results))
        return Json(Completion(**self._identity._asdict(), choices=choices, usage=usage))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the completion's chunks as they come."""
        encoder = self._encoder
        async with aclosing(self._prompts.stream(self._progress)) as items:
            async for number, item in items:
                frames = encoder.deltas(number, item) if isinstance(item, list) else encoder.finish_prompt(number, item)
                if frames:
                    yield frames
        yield encoder.end()


async def _create_completion(context: RequestContext, body: CompletionRequest) -> Reply:
    generation = await context.beside_loop(CompletionGeneration, context, body)
    return await reply_with(generation, stream=body.stream)


COMPLETIONS: Final = Endpoint(
    method="POST",
    path="/v1/completions",
    summary="Continue prompts.",
    handler=_create_completion,
    request_type=CompletionRequest,
    aliases={**SAMPLING_ALIASES, "max_completion_tokens": renamed("max_tokens")},
    response_type=Completion,
    event_type=Completion,
)
