"""Prompts that are too long: what is left out of them. It knows no model library."""

from collections.abc import Sequence
from typing import TypeVar

from lmwire_protocol import Chat, Generate, RequestError

T = TypeVar("T")


def fit(request: Generate | Chat, tokens: Sequence[T], context_len: int, bos: T | None = None) -> list[T]:
    """A request's prompt, as much of it as the context holds.

    With `truncate` the answer has room for max_tokens behind it, or for one token: `left` keeps the end of the prompt,
    `middle` the two halves of what fits. A beginning-of-text token stays.

    Args:
        request: Whose prompt it is.
        tokens: The prompt.
        context_len: Tokens of prompt and answer together, at most.
        bos: The beginning-of-text token, if the model has one.

    Raises:
        RequestError: context_overflow.
    """
    if request.truncate == "none":
        if len(tokens) > context_len:
            problem = f"the prompt has {len(tokens)} tokens, and the context holds {context_len}"
            raise RequestError("context_overflow", f"{problem}; shorten it, or send `truncate`")
        return list(tokens)
    room = context_len - (1 if request.max_tokens is None else request.max_tokens)
    if len(tokens) <= room:
        return list(tokens)
    begins = 1 if tokens[0] == bos else 0
    if room <= begins:
        problem = f"the context holds {context_len} tokens, and max_tokens, {request.max_tokens or 1}, leaves no room"
        raise RequestError("context_overflow", f"{problem} for a prompt")
    head = max(begins, room // 2) if request.truncate == "middle" else begins
    return [*tokens[:head], *tokens[len(tokens) - (room - head) :]]
