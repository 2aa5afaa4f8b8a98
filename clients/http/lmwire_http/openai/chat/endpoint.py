"""POST /v1/chat/completions, and the length of its prompt."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from ...http.context import RequestContext
from ...http.endpoint import Json, Reply, endpoint
from ...inference.options import TEMPLATE_ALIASES, TEXT_ALIASES, reasoning_aliases, renamed
from .generation import ChatGeneration
from .image_groups import GroupedGeneration
from .request import ChatRequest, image_group_size
from .response import ChatCompletion
from .stream import Chunk
from .transcript import TranscriptCompletion, writes_down_speech


def _json_schema(value: Any) -> Mapping[str, Any]:
    """Set `response_format`. An empty schema is any JSON value."""
    if not isinstance(value, dict):
        raise ValueError("must be a JSON Schema, an object")
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": value}}}


_REASONING: Final = dict(reasoning_aliases(lambda effort: {"reasoning_effort": effort}))
del _REASONING["enable_thinking"]  # a field of the request: an effort may stand beside it


@endpoint(
    "POST",
    "/v1/chat/completions",
    aliases={
        **TEXT_ALIASES,
        **TEMPLATE_ALIASES,
        **_REASONING,
        "response_prefix": renamed("prefix"),
        "max_length": renamed("max_tokens"),
        "json_schema": _json_schema,
    },
    response_type=ChatCompletion,
    event_type=Chunk,
)
async def create_chat_completion(context: RequestContext, body: ChatRequest) -> Reply:
    """Answer a conversation."""
    is_transcript = await writes_down_speech(context, body)
    if is_transcript:
        kind = TranscriptCompletion
    elif image_group_size(body, context.state.settings.image_group) is not None:
        kind = GroupedGeneration
    else:
        kind = ChatGeneration
    completion = await context.beside_loop(kind, context, body)
    return await completion.reply(stream=body.stream)


class InputTokens(Struct, kw_only=True):
    """The length of a prompt, as llama.cpp's server returns it."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


@endpoint(
    "POST", "/v1/chat/completions/input_tokens", aliases=create_chat_completion.aliases, response_type=InputTokens
)
async def count_input_tokens(context: RequestContext, body: ChatRequest) -> Reply:
    """Count the tokens of a conversation, as llama.cpp's server does."""
    completion = await context.beside_loop(ChatGeneration, context, body)
    return Json(InputTokens(input_tokens=await completion.count_tokens()))
