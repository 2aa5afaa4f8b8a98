"""POST /v1/chat/completions."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from lmwire_protocol import events

from ...http.context import RequestContext
from ...http.endpoint import Endpoint, Json, Reply, reply_with
from ...inference.call_ids import OPENAI_PREFIX, restore_call_ids
from ...inference.chat import run_chat
from ...inference.generation import Generation
from ...inference.media import new_media
from ...inference.options import SAMPLING_ALIASES, TEMPLATE_ALIASES, reasoning_aliases, renamed
from ..messages import wire_messages
from ..request_fields import usage_chunk, usage_so_far
from ..response_fields import ProgressTracker, new_identity
from .image_groups import ImageGroup, image_groups, join_choices, join_results
from .request import ChatRequest, chat_options, client_field, image_group_size, wants_logprobs
from .response import ChatCompletion, ChoiceParts, chat_completion, collect_choices
from .stream import ChatStreamEncoder, Chunk
from .transcript import TranscriptCompletion, writes_down_speech

_NO_OPTIONS: Final[Mapping[str, Any]] = {}
IMAGE_ANSWER_TOKENS: Final = 2048
"""Maximum length of an answer about new images, if the request has none."""


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
        self._messages = wire_messages(body.messages)
        restore_call_ids(self._messages, OPENAI_PREFIX)
        self._options: Any = chat_options(body)
        has_new_images = any(part["type"] == "image" for _, part in new_media(self._messages))
        self._max_tokens = IMAGE_ANSWER_TOKENS if has_new_images else None
        self._group_size = image_group_size(body, context.state.settings.image_group)
        self._identity = new_identity("chatcmpl", body.model, context.state.settings)
        so_far = usage_so_far(body)
        self._encoder = ChatStreamEncoder(
            self._identity,
            usage=usage_chunk(body, context.state.settings),
            so_far=so_far,
            has_functions=body.functions is not None,
        )
        self._progress = ProgressTracker(
            is_wanted=bool(body.return_progress), encode=self._encoder.waiting, so_far=so_far
        )
        self.waiting = self._progress.waiting

    async def whole(self) -> Json:
        """Return the whole chat completion."""
        headings: list[str] = []
        choices: list[list[ChoiceParts]] = []
        results: list[events.ResultDone] = []
        for group in image_groups(self._messages, self._group_size):
            headings.append(group.heading)
            async with self._generation(group) as generation:
                deltas = [delta async for batch in generation for delta in batch]
                answers = await generation.answers()
                choices.append(collect_choices(deltas, answers, logprobs=wants_logprobs(self._body)))
                results.append(generation.result)
        joined, usage = join_choices(headings, choices), join_results(results).usage
        has_functions = self._body.functions is not None
        return Json(chat_completion(self._identity, joined, usage, has_functions=has_functions))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the chat completion's chunks as they come."""
        encoder = self._encoder
        results: list[events.ResultDone] = []
        for number, group in enumerate(image_groups(self._messages, self._group_size)):
            heading = encoder.text(group.heading) if group.heading else b""
            async with self._generation(group, self._progress.options(number)) as generation:
                if results:  # the first heading waits for a token: until then, an error has an HTTP status
                    yield heading
                    heading = b""
                async for batch in generation:
                    if frames := heading + encoder.deltas(batch, number):
                        heading = b""
                        yield frames
                if heading:
                    yield heading
                results.append(generation.result)
                encoder.note_end(number, generation.result)
        yield encoder.end(join_results(results))

    def _generation(
        self, group: ImageGroup, progress: Mapping[str, Any] = _NO_OPTIONS
    ) -> AbstractAsyncContextManager[Generation]:
        return run_chat(
            self._context,
            self._body.model,
            group.messages,
            {**self._options, **progress},
            rename=lambda field: client_field(self._body, group.client_field(field)),
            checks_media=self._body.strict_media is not False,
            max_tokens=self._max_tokens,
        )


async def _create_chat_completion(context: RequestContext, body: ChatRequest) -> Reply:
    is_transcript = await writes_down_speech(context, body)
    kind = TranscriptCompletion if is_transcript else ChatGeneration
    completion = await context.beside_loop(kind, context, body)
    return await reply_with(completion, stream=body.stream)


CHAT: Final = Endpoint(
    method="POST",
    path="/v1/chat/completions",
    summary="Answer a conversation.",
    handler=_create_chat_completion,
    request_type=ChatRequest,
    aliases={
        **SAMPLING_ALIASES,
        **TEMPLATE_ALIASES,
        **reasoning_aliases(lambda effort: {"reasoning_effort": effort}),
        "response_prefix": renamed("prefix"),
    },
    response_type=ChatCompletion,
    event_type=Chunk,
)
