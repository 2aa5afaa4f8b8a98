"""Prompts and texts that outgrow the context, for an API whose server shortens them.

The oldest turns of a conversation go first. A text to embed keeps its beginning.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lmwire import AsyncWorker, MessageDict, TemplateOptions

from .media import has_media

_OVERHEAD_TOKENS: Final = 1024
"""More tokens than a chat template adds to a conversation."""
_INSTRUCTIONS: Final = ("system", "developer")
_MAX_CHARACTERS: Final = 128
"""Characters of a token on average that no text exceeds. What is beyond is cut without counting tokens."""


async def fit_conversation(
    worker: AsyncWorker, messages: Sequence[MessageDict], options: dict[str, Any], context_len: int | None
) -> Sequence[MessageDict]:
    """Return a conversation without the oldest turns that the context cannot hold.

    The instructions and the last turn stay. If these are too long, the worker removes their beginning. The answer has
    at most a quarter of the context then, or its `max_tokens`, but not more than half. A conversation with images or
    sounds is left as it is, since the worker cannot cut it.

    Args:
        worker: The worker with the model, which counts tokens.
        messages: The conversation.
        options: The options of the generation, which change if the conversation is too long.
        context_len: The model's context in tokens; None if unknown.

    Raises:
        LmwireError: The worker cannot make the prompt.
    """
    template: Any = {name: value for name, value in options.items() if name in TemplateOptions.__annotations__}
    if context_len is None or _is_short([messages, template.get("tools")], context_len) or has_media(messages):
        return messages
    if await worker.count_tokens(messages, **template) <= context_len:
        return messages
    room = _truncate(options, context_len)
    instructions = [message for message in messages if message["role"] in _INSTRUCTIONS]
    turns = [message for message in messages if message["role"] not in _INSTRUCTIONS]
    starts = [place for place, message in enumerate(turns) if message["role"] == "user"] or [0]
    first, last = 0, len(starts) - 1  # the first start with which the rest fits is among these, if one is
    while first < last:
        middle = (first + last) // 2
        if await worker.count_tokens([*instructions, *turns[starts[middle] :]], **template) <= room:
            last = middle
        else:
            first = middle + 1
    return [*instructions, *turns[starts[last] :]]


async def fit_text(worker: AsyncWorker, text: str, options: dict[str, Any], context_len: int | None) -> None:
    """Let the worker remove the beginning of a text that the context cannot hold.

    Args:
        worker: The worker with the model, which counts tokens.
        text: The prompt.
        options: The options of the generation, which change as in `fit_conversation`.
        context_len: The model's context in tokens; None if unknown.

    Raises:
        LmwireError: The worker cannot make the prompt.
    """
    if context_len is None or _is_short(text, context_len):
        return
    if await worker.count_tokens(text) > context_len:
        _truncate(options, context_len)


async def fit_inputs(worker: AsyncWorker, texts: Sequence[str], context_len: int | None) -> list[str]:
    """Return texts to embed without the ends that the context cannot hold.

    Args:
        worker: The worker with the model, which counts tokens.
        texts: The texts.
        context_len: The model's context in tokens; None if unknown.

    Raises:
        LmwireError: The worker cannot count the tokens.
    """
    return [text if context_len is None else await _fit_input(worker, text, context_len) for text in texts]


async def _fit_input(worker: AsyncWorker, text: str, context_len: int) -> str:
    if _is_short(text, context_len):
        return text
    text = text[: context_len * _MAX_CHARACTERS]
    while text and (count := await worker.count_tokens(text)) > context_len:
        text = text[: min(len(text) * context_len // count, len(text) - 1)]
    return text


def _is_short(prompt: object, context_len: int) -> bool:
    """Return whether the context holds a prompt whatever its tokens are: none is shorter than a byte."""
    return len(msgspec.json.encode(prompt)) + _OVERHEAD_TOKENS <= context_len


def _truncate(options: dict[str, Any], context_len: int) -> int:
    """Let the worker cut a prompt that is too long. Return the number of tokens that it keeps."""
    options["truncate"] = "left"
    options["max_tokens"] = min(options.get("max_tokens", context_len // 4), context_len // 2)
    return context_len - options["max_tokens"]
