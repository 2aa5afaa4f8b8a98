"""POST /api/chat."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

from msgspec import UNSET

from ..http.context import RequestContext
from ..http.endpoint import Endpoint, Reply
from ..http.error_formats import OLLAMA_ERRORS
from ..inference.chat import run_chat
from ..inference.generation import Generation
from .answer import load_or_unload, reply_with_answer
from .answer_parts import AnswerPart
from .conversation import client_field, wire_messages
from .model_names import without_tag
from .request_options import chat_options
from .request_schema import OllamaChatRequest
from .response_schema import AnswerMessage, ChatResponse


def _make_line(part: AnswerPart, **fields: Any) -> ChatResponse:
    message = AnswerMessage(content=part.content, thinking=part.thinking or UNSET, tool_calls=part.tool_calls or UNSET)
    return ChatResponse(message=message, logprobs=part.logprobs or UNSET, **fields)


async def _chat(context: RequestContext, body: OllamaChatRequest) -> Reply:
    if not body.messages:
        return await load_or_unload(context, body, _make_line)
    messages = await context.beside_loop(wire_messages, body.messages)
    options = chat_options(body, body.tools)

    def generate() -> AbstractAsyncContextManager[Generation]:
        rename = partial(client_field, body.messages or ())
        return run_chat(
            context,
            without_tag(body.model),
            messages,
            options,
            rename=rename,
            checks_media=body.strict_media is not False,
        )

    return await reply_with_answer(context, body, generate, _make_line)


CHAT: Final = Endpoint(
    method="POST",
    path="/api/chat",
    summary="Answer a conversation.",
    handler=_chat,
    error_format=OLLAMA_ERRORS,
    request_type=OllamaChatRequest,
    takes_curl_type=True,
    response_type=ChatResponse,
    line_type=ChatResponse,
)
