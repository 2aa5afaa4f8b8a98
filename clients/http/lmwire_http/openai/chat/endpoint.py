"""POST /v1/chat/completions."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from time import time
from typing import Final

from ...http.context import RequestContext
from ...http.endpoint import Endpoint
from ...http.replies import Json, Reply, reply_with
from ...inference.field_aliases import SAMPLING_ALIASES, reasoning_aliases
from ...inference.generation import Generation, run_generation
from ..generation_params import wants_usage
from ..ids import new_id
from ..messages import wire_messages
from .request_options import chat_options, client_field
from .request_schema import ChatRequest
from .response_schema import ChatCompletion, chat_completion, collect_choices
from .stream_encoder import ChatStreamEncoder, Chunk


class ChatGeneration:
    """The answers to one chat completion request.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: ChatRequest) -> None:
        self._context, self._body = context, body
        self._messages, self._options = wire_messages(body.messages), chat_options(body)
        self._id, self._created = new_id("chatcmpl"), int(time())

    async def whole(self) -> Json:
        """Return the whole chat completion."""
        async with self._generation() as generation:
            deltas = [delta async for batch in generation for delta in batch]
            choices = collect_choices(deltas, await generation.answers(), logprobs=bool(self._body.logprobs))
            usage = generation.result.usage
            return Json(chat_completion(self._id, self._created, self._body.model, choices, usage))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the chat completion's chunks as they come."""
        encoder = ChatStreamEncoder(self._id, self._created, self._body.model, usage=wants_usage(self._body))
        async with self._generation() as generation:
            async for batch in generation:
                if frames := encoder.deltas(batch):
                    yield frames
            yield encoder.end(generation.result)

    def _generation(self) -> AbstractAsyncContextManager[Generation]:
        return run_generation(
            self._context,
            self._body.model,
            lambda worker: worker.chat(self._messages, **self._options),
            prompt=[*self._options.get("tools", ()), *self._messages],
            rename=lambda field: client_field(self._body, field),
            n=self._body.n or 1,
            checked_messages=() if self._body.strict_media is False else self._messages,
        )


async def _create_chat_completion(context: RequestContext, body: ChatRequest) -> Reply:
    return await reply_with(ChatGeneration(context, body), stream=body.stream)


CHAT: Final = Endpoint(
    method="POST",
    path="/v1/chat/completions",
    summary="Answer a conversation.",
    handler=_create_chat_completion,
    request_type=ChatRequest,
    aliases={**SAMPLING_ALIASES, **reasoning_aliases(lambda effort: {"reasoning_effort": effort})},
    response_type=ChatCompletion,
    event_type=Chunk,
)
