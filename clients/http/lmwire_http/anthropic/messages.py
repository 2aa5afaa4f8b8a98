"""POST /v1/messages: an answer to a conversation, whole or as it comes."""

import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from lmwire_protocol import events

from ..errors import ApiError
from ..http.context import RequestContext
from ..http.endpoint import Endpoint
from ..http.error_formats import ANTHROPIC_ERRORS
from ..http.replies import EventStream, Json, Reply
from ..inference.generation import Generation, generation
from .conversation import Conversation
from .request_options import chat_options, shows_thinking
from .request_schema import Messages
from .response_schema import Message, Usage, is_cut, stop_reason, usage
from .stream_events import AnyEvent, Blocks, MessageDelta, MessageStart, MessageStop, StopDelta, content, frame


class Answering:
    """One answer, from the request to its end.

    Args:
        context: For whom.
        body: What is asked.

    Raises:
        ApiError: it cannot be asked.
    """

    def __init__(self, context: RequestContext, body: Messages) -> None:
        self._context, self._body = context, body
        self._conversation = Conversation(body)
        self._options = chat_options(body)
        self._blocks = Blocks(shows_thinking=shows_thinking(body))
        self._prompt_tokens = 0
        self._id = f"msg_{uuid.uuid4().hex}"

    async def whole(self) -> Message:
        """The whole message."""
        pieces = []
        async with self._generation() as running:
            async for batch in running:
                pieces += batch
        result = _ended(running.result)
        return Message(
            id=self._id,
            model=self._body.model,
            content=content([*self._blocks.add(pieces), *self._blocks.end(cut=is_cut(result))]),
            stop_reason=stop_reason(result, self._body.max_tokens),
            stop_sequence=result.stop,
            usage=usage(result),
        )

    async def frames(self) -> AsyncIterator[bytes]:
        """The same as it comes."""
        started = False
        async with self._generation() as running:
            async for batch in running:
                frames = [] if started else [self._start()]
                started = True
                frames += map(frame, self._blocks.add(batch))
                if frames:
                    yield b"".join(frames)
            result = _ended(running.result)
        frames = [] if started else [self._start()]
        frames += map(frame, [*self._blocks.end(cut=is_cut(result)), self._end(result), MessageStop()])
        yield b"".join(frames)

    def _generation(self) -> AbstractAsyncContextManager[Generation]:
        conversation, options = self._conversation, self._options
        return generation(
            self._context,
            self._body.model,
            lambda worker: worker.chat(
                conversation.messages, prefix=conversation.prefix, on_progress=self._note_progress, **options
            ),
            prompt=[options.get("tools"), *conversation.messages],
            rename=conversation.rename,
        )

    def _note_progress(self, progress: events.Progress) -> None:
        self._prompt_tokens = progress.total or 0

    def _start(self) -> bytes:
        """The beginning. How much of the prompt was cached only the end tells."""
        began = Usage(input_tokens=self._prompt_tokens, output_tokens=0)
        return frame(MessageStart(Message(id=self._id, model=self._body.model, usage=began)))

    def _end(self, result: events.ResultDone) -> MessageDelta:
        return MessageDelta(
            StopDelta(stop_reason(result, self._body.max_tokens), result.stop),
            usage(result),
        )


async def create_message(context: RequestContext, body: Messages) -> Reply:
    """Serves /v1/messages."""
    if body.thread is not None:
        problem = "thread: no conversations are kept here; send the whole of it, without this"
        raise ApiError(400, problem, code="thread_unsupported_request", param="thread")
    answering = Answering(context, body)
    return EventStream(answering.frames()) if body.stream else Json(await answering.whole())


def _ended(result: events.ResultDone) -> events.ResultDone:
    """The result, if the request came to an end of its own."""
    if result.finish_reason == "cancelled":
        raise ApiError(503, "the model's process was ended, and the request with it", code="cancelled", retry_after=1.0)
    return result


MESSAGES: Final = Endpoint(
    method="POST",
    path="/v1/messages",
    summary="Answer a conversation",
    handler=create_message,
    error_format=ANTHROPIC_ERRORS,
    request_type=Messages,
    response_type=Message,
    event_type=AnyEvent,
)
