"""POST /api/chat, an answer to a conversation, and POST /api/generate, an answer to one prompt or its continuation."""

import re
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

from msgspec import UNSET

from lmwire import AsyncStream, MessageDict

from ..errors import ApiError, invalid_field
from ..http.context import RequestContext
from ..http.endpoint import Reply, endpoint
from ..http.error_formats import OLLAMA_ERRORS
from ..inference.chat import run_chat
from ..inference.context_fit import fit_text
from ..inference.generation import Generation, run_generation
from ..pool import Lease
from .history import read_context, write_context
from .request import (
    GenerateRequest,
    OllamaChatRequest,
    chat_field,
    chat_options,
    client_field,
    content_with_images,
    generation_options,
    wire_messages,
    without_tag,
)
from .response import AnswerMessage, AnswerPart, ChatResponse, GenerateResponse, load_or_unload, reply_with_answer

_MESSAGE: Final = re.compile(r"messages\[(\d+)\](?:\.content(?:\[(\d+)\])?)?.*")
_UNSUPPORTED: Final = {
    "template": "templates of requests are not supported here; leave it out, or send a whole prompt with `raw`",
}
_CONVERSATION: Final = ("system", "images", "context")
"""Fields that only a prompt in the chat template has."""


def _chat_line(part: AnswerPart, **fields: Any) -> ChatResponse:
    message = AnswerMessage(content=part.content, thinking=part.thinking or UNSET, tool_calls=part.tool_calls or UNSET)
    return ChatResponse(message=message, logprobs=part.logprobs or UNSET, **fields)


@endpoint(
    "POST",
    "/api/chat",
    error_format=OLLAMA_ERRORS,
    takes_curl_type=True,
    response_type=ChatResponse,
    line_type=ChatResponse,
)
async def answer_chat(context: RequestContext, body: OllamaChatRequest) -> Reply:
    """Answer a conversation."""
    if not body.messages:
        return await load_or_unload(context, body, _chat_line)
    messages = await context.beside_loop(wire_messages, body.messages)
    options = chat_options(body, body.tools)

    def generate() -> AbstractAsyncContextManager[Generation]:
        rename = partial(chat_field, body.messages or ())
        return run_chat(
            context,
            without_tag(body.model),
            messages,
            options,
            rename=rename,
            checks_media=body.strict_media is not False,
            fits_context=body.truncate is not False,
        )

    return await reply_with_answer(context, body, generate, _chat_line)


def _generate_line(part: AnswerPart, **fields: Any) -> GenerateResponse:
    return GenerateResponse(
        response=part.content, thinking=part.thinking or UNSET, logprobs=part.logprobs or UNSET, **fields
    )


@endpoint(
    "POST",
    "/api/generate",
    error_format=OLLAMA_ERRORS,
    takes_curl_type=True,
    response_type=GenerateResponse,
    line_type=GenerateResponse,
)
async def answer_prompt(context: RequestContext, body: GenerateRequest) -> Reply:
    """Answer a prompt, or continue it."""
    _check(body)
    if not (body.prompt or body.suffix):
        return await load_or_unload(context, body, _generate_line)
    if body.raw or body.suffix:
        continued = _continue_prompt(context, body, body.prompt or "")
        return await reply_with_answer(context, body, continued, _generate_line)
    messages = await context.beside_loop(_conversation, body)
    return await reply_with_answer(
        context,
        body,
        _answer_prompt(context, body, messages),
        _generate_line,
        lambda answer: {"context": write_context(messages, answer)},
    )


def _conversation(body: GenerateRequest) -> list[MessageDict]:
    """Return the messages that the prompt ends. A `system` takes the place of the one in the context."""
    messages = read_context(body.context) if body.context else []
    if body.system:
        others = messages[1:] if messages and messages[0]["role"] == "system" else messages
        system: MessageDict = {"role": "system", "content": body.system}
        messages = [system, *others]
    user: MessageDict = {"role": "user", "content": content_with_images(body.prompt or "", body.images)}
    return [*messages, user]


def _answer_prompt(
    context: RequestContext, body: GenerateRequest, messages: list[MessageDict]
) -> partial[AbstractAsyncContextManager[Generation]]:
    return partial(
        run_chat,
        context,
        without_tag(body.model),
        messages,
        chat_options(body),
        rename=partial(_prompt_field, body),
        checks_media=body.strict_media is not False,
        fits_context=body.truncate is not False,
    )


def _continue_prompt(
    context: RequestContext, body: GenerateRequest, prompt: str
) -> partial[AbstractAsyncContextManager[Generation]]:
    options = generation_options(body)
    if body.suffix:
        options["suffix"] = body.suffix

    async def start(lease: Lease, options: Any) -> AsyncStream:
        if body.suffix and "suffix" not in lease.model.capabilities:
            message = (
                f'"{body.model[:200]}" does not support insert: load a model that fills gaps, such as Qwen2.5-Coder'
            )
            raise ApiError(400, message, code="unsupported", param="suffix")
        if body.truncate is not False and not body.suffix:
            await fit_text(lease.worker, prompt, options, lease.model.context_len)
        return lease.worker.generate(prompt, **options)

    return partial(
        run_generation,
        context,
        without_tag(body.model),
        options,
        start,
        prompt=[prompt],
        rename=client_field,
    )


def _prompt_field(body: GenerateRequest, field: str) -> str:
    """Return the client's name of a worker's field."""
    found = _MESSAGE.fullmatch(field)
    if found is None:
        return client_field(field)
    if body.system and found[1] == "0":
        return "system"
    if body.context and found[2] is None:
        return "prompt"
    return f"images[{found[2]}]" if int(found[2] or 0) < len(body.images or ()) else "prompt"


def _check(body: GenerateRequest) -> None:
    for field, problem in _UNSUPPORTED.items():
        if getattr(body, field):
            raise invalid_field(f"{field}: {problem}", field)
    plain = "raw" if body.raw else "suffix"
    for field in _CONVERSATION:
        if getattr(body, plain) and getattr(body, field):
            raise invalid_field(f"{field}: cannot be combined with `{plain}`, which uses no chat template", field)
