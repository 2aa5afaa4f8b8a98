"""POST /v1/completions."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from time import time
from typing import Final

from ...http.context import RequestContext
from ...http.endpoint import Endpoint
from ...http.replies import EventStream, Json, Reply
from ..generation_params import wants_usage
from ..ids import new_id
from ..usage import usage_of
from .prompt_batch import Asking
from .request_schema import CompletionBody
from .response_schema import Completion, choices_of
from .stream_encoder import CompletionChunks


async def _serve(context: RequestContext, body: CompletionBody) -> Reply:
    asking = Asking(context, body)
    if body.stream:
        return EventStream(_frames(asking, body))
    return Json(await _whole(asking, body))


async def _whole(asking: Asking, body: CompletionBody) -> Completion:
    created, echoed = int(time()), asking.echoed
    wholes = await asking.answers()
    choices = [
        choice
        for number, answers, _ in wholes
        for choice in choices_of(
            answers, first=number * asking.n, before=echoed[number], logprobs=body.logprobs is not None
        )
    ]
    usage = usage_of(*(usage for _, _, usage in wholes))
    return Completion(id=new_id("cmpl"), created=created, model=body.model, choices=choices, usage=usage)


async def _frames(asking: Asking, body: CompletionBody) -> AsyncIterator[bytes]:
    chunks = CompletionChunks(
        new_id("cmpl"), int(time()), body.model, n=asking.n, before=asking.echoed, usage=wants_usage(body)
    )
    async with aclosing(asking.streamed()) as parts:
        async for number, part in parts:
            if frames := chunks.pieces(number, part) if isinstance(part, list) else chunks.ended(number, part):
                yield frames
    yield chunks.end()


COMPLETIONS: Final = Endpoint(
    method="POST",
    path="/v1/completions",
    summary="Continue prompts.",
    handler=_serve,
    request_type=CompletionBody,
    response_type=Completion,
    event_type=Completion,
)
