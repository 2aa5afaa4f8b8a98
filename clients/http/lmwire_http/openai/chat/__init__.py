"""POST /v1/chat/completions."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from time import time
from typing import Final, TypeAlias

from ...http.context import RequestContext
from ...http.endpoint import Endpoint
from ...http.replies import EventStream, Json, Reply
from ...inference.generation import Generation, generation
from ..generation_params import wants_usage
from ..ids import new_id
from ..messages import wire_messages
from .request_options import chat_options, renamed
from .request_schema import ChatBody
from .response_schema import ChatCompletion, chat_completion, choices_of
from .stream_encoder import ChatChunks, Chunk

Answering: TypeAlias = Callable[[], AbstractAsyncContextManager[Generation]]
"""Starts the generation."""


async def _serve(context: RequestContext, body: ChatBody) -> Reply:
    messages, options = wire_messages(body.messages), chat_options(body)
    answering = partial(
        generation,
        context,
        body.model,
        lambda worker: worker.chat(messages, **options),
        prompt=[*options.get("tools", ()), *messages],
        rename=partial(renamed, body),
        n=body.n or 1,
    )
    if body.stream:
        return EventStream(_frames(body, answering))
    return Json(await _whole(body, answering))


async def _whole(body: ChatBody, answering: Answering) -> ChatCompletion:
    created = int(time())
    async with answering() as answer:
        pieces = [piece async for batch in answer for piece in batch]
        choices = choices_of(pieces, await answer.answers(), logprobs=bool(body.logprobs))
        return chat_completion(new_id("chatcmpl"), created, body.model, choices, answer.result.usage)


async def _frames(body: ChatBody, answering: Answering) -> AsyncIterator[bytes]:
    chunks = ChatChunks(new_id("chatcmpl"), int(time()), body.model, usage=wants_usage(body))
    async with answering() as answer:
        async for batch in answer:
            if frames := chunks.pieces(batch):
                yield frames
        yield chunks.end(answer.result)


CHAT: Final = Endpoint(
    method="POST",
    path="/v1/chat/completions",
    summary="Answer a conversation.",
    handler=_serve,
    request_type=ChatBody,
    response_type=ChatCompletion,
    event_type=Chunk,
)
