"""Requests to prompt tokens, exactly as mlx-lm makes them."""

from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import Chat, Generate, RequestError
from lmwire_protocol.commands import Message


def prompt_tokens(request: Generate | Chat, tokenizer: TokenizerWrapper, vocab_size: int) -> list[int]:
    """The prompt of a request, at least one token.

    Raises:
        RequestError: invalid_request, unsupported.
    """
    if isinstance(request, Chat):
        field, tokens = "messages", _render(request.messages, tokenizer)
    elif isinstance(request.prompt, str):
        field, tokens = "prompt", _encode(request.prompt, tokenizer)
    else:
        field, tokens = "prompt", list(request.prompt)
    if not tokens:
        raise RequestError("invalid_request", f"{field}: comes to no tokens; give the model something", field=field)
    if max(tokens) >= vocab_size:
        index = next(index for index, token in enumerate(tokens) if token >= vocab_size)
        problem = f"{field}[{index}]: {tokens[index]} is no token of this model, whose vocabulary has {vocab_size}"
        raise RequestError("invalid_request", problem, field=f"{field}[{index}]")
    return tokens


def _encode(text: str, tokenizer: TokenizerWrapper) -> list[int]:
    # A prompt that brings its own beginning-of-text token gets no second one.
    begun = tokenizer.bos_token is not None and text.startswith(tokenizer.bos_token)
    return list(tokenizer.encode(text, add_special_tokens=not begun))


def _render(messages: list[Message], tokenizer: TokenizerWrapper) -> list[int]:
    if not tokenizer.has_chat_template:
        problem = "this model has no chat template, so it cannot chat; use `generate` with a prompt of your own"
        raise RequestError("unsupported", problem)
    conversation: list[Any] = [{"role": message.role, "content": _text(message)} for message in messages]
    try:
        return list(tokenizer.apply_chat_template(conversation, add_generation_prompt=True))
    except Exception as error:  # templates are the model's own programs, and raise what they like
        problem = f"messages: this model's chat template refuses them: {error}"
        raise RequestError("invalid_request", problem, field="messages") from None


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in message.content)
