"""POST /v1/messages, an answer to a conversation, whole or as a stream; the count of its tokens; and GET /api/hello."""

import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal

from msgspec import Struct

from lmwire_protocol import events

from ..errors import ApiError
from ..http.context import RequestContext
from ..http.endpoint import Json, Reply, Streamable, endpoint
from ..http.error_formats import ANTHROPIC_ERRORS
from ..http.sse import WaitingEvent
from ..inference.chat import count_prompt_tokens, run_chat
from ..inference.generation import Batch, Generation, finish_reason
from ..inference.options import SAMPLING_ALIASES, TEMPLATE_ALIASES, renamed
from .conversation import Conversation
from .options import chat_options, prompt_options, shows_thinking, thinking_of
from .request import CountTokensRequest, MessagesRequest
from .response import Message, Usage, is_incomplete, stop_reason, to_usage
from .stream import (
    AnyEvent,
    ContentBuilder,
    MessageDelta,
    MessageStart,
    MessageStop,
    StopDelta,
    collect_content,
    encode_event,
    make_pings,
)
from .tool_set import ToolSet


class MessageGeneration(Streamable[MessagesRequest]):
    """The generation of one message."""

    def __init__(self, context: RequestContext, body: MessagesRequest) -> None:
        super().__init__(context, body)
        self._conversation = Conversation(body)
        self._tools = ToolSet(body, context.unknown_fields)
        self._options = chat_options(body, self._tools, context.unknown_fields)
        self._blocks = ContentBuilder(shows_thinking=shows_thinking(body))
        self._prompt_tokens = 0
        self.waiting = WaitingEvent(make_pings())
        self._id = f"msg_{uuid.uuid4().hex}"

    async def whole(self) -> Json:
        """Return the whole message."""
        deltas: Batch = []
        async with self._generation() as generation:
            async for batch in generation:
                deltas += batch
        result = generation.result
        finish_reason(result.finish_reason)  # an error if the server has cancelled it
        message = Message(
            id=self._id,
            model=self._body.model,
            content=collect_content([*self._blocks.add(deltas), *self._blocks.end(cut=is_incomplete(result))]),
            stop_reason=stop_reason(result, self._body.max_tokens),
            stop_sequence=result.stop,
            usage=to_usage(result),
        )
        return Json(message)

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the message's events as they come."""
        started = False
        async with self._generation() as generation:
            async for batch in generation:
                frames = [] if started else [self._start()]
                started = True
                frames += map(encode_event, self._blocks.add(batch))
                if frames:
                    yield b"".join(frames)
            result = generation.result
            finish_reason(result.finish_reason)  # an error if the server has cancelled it
        frames = [] if started else [self._start()]
        frames += map(encode_event, [*self._blocks.end(cut=is_incomplete(result)), self._end(result), MessageStop()])
        yield b"".join(frames)

    def _generation(self) -> AbstractAsyncContextManager[Generation]:
        return run_chat(
            self._context,
            self._body.model,
            self._conversation.messages,
            {**self._options, "prefix": self._conversation.prefix, "on_progress": self._note_progress},
            rename=lambda field: self._tools.client_field(field) or self._conversation.client_field(field),
            checks_media=self._body.strict_media is not False,
        )

    def _note_progress(self, progress: events.Progress) -> None:
        self._prompt_tokens = progress.total or 0

    def _start(self) -> bytes:
        """Return the first event. Only the last event can report cached tokens."""
        began = Usage(input_tokens=self._prompt_tokens, output_tokens=0)
        return encode_event(MessageStart(Message(id=self._id, model=self._body.model, usage=began)))

    def _end(self, result: events.ResultDone) -> MessageDelta:
        return MessageDelta(
            StopDelta(stop_reason(result, self._body.max_tokens), result.stop),
            to_usage(result),
        )


@endpoint(
    "POST",
    "/v1/messages",
    error_format=ANTHROPIC_ERRORS,
    aliases={
        **SAMPLING_ALIASES,
        **TEMPLATE_ALIASES,
        "enable_thinking": thinking_of,
        "max_completion_tokens": renamed("max_tokens"),
    },
    response_type=Message,
    event_type=AnyEvent,
)
async def create_message(context: RequestContext, body: MessagesRequest) -> Reply:
    """Answer a conversation."""
    if body.thread is not None:
        problem = "thread: threads are not supported; send the whole conversation, without this"
        raise ApiError(400, problem, code="thread_unsupported_request", param="thread")
    generation = await context.beside_loop(MessageGeneration, context, body)
    return await generation.reply(stream=body.stream)


class TokenCount(Struct):
    """The length of a prompt."""

    input_tokens: int


@endpoint(
    "POST",
    "/v1/messages/count_tokens",
    error_format=ANTHROPIC_ERRORS,
    aliases={**TEMPLATE_ALIASES, "enable_thinking": thinking_of},
    response_type=TokenCount,
)
async def count_tokens(context: RequestContext, body: CountTokensRequest) -> Json:
    """Count the tokens of a conversation."""
    conversation = await context.beside_loop(Conversation, body)
    tools = await context.beside_loop(ToolSet, body, context.unknown_fields)
    options = {**prompt_options(body, tools, context.unknown_fields), "prefix": conversation.prefix}
    count = await count_prompt_tokens(
        context,
        body.model,
        conversation.messages,
        options,
        rename=lambda field: tools.client_field(field) or conversation.client_field(field),
    )
    return Json(TokenCount(count))


class Hello(Struct):
    """The server is there."""

    message: Literal["hello"] = "hello"


@endpoint("GET", "/api/hello", error_format=ANTHROPIC_ERRORS, response_type=Hello, is_public=True)
async def say_hello(context: RequestContext, _: None) -> Json:
    """Report that the server is there."""
    return Json(Hello())
