"""POST /v1/chat/completions."""

from typing import Final

from ...http.context import RequestContext
from ...http.endpoint import Endpoint, Reply, reply_with
from ...inference.options import SAMPLING_ALIASES, TEMPLATE_ALIASES, reasoning_aliases, renamed
from .generation import ChatGeneration
from .image_groups import GroupedGeneration
from .request import ChatRequest, image_group_size
from .response import ChatCompletion
from .stream import Chunk
from .transcript import TranscriptCompletion, writes_down_speech


async def _create_chat_completion(context: RequestContext, body: ChatRequest) -> Reply:
    is_transcript = await writes_down_speech(context, body)
    if is_transcript:
        kind = TranscriptCompletion
    elif image_group_size(body, context.state.settings.image_group) is not None:
        kind = GroupedGeneration
    else:
        kind = ChatGeneration
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
