"""Prompts of the mock: the tokens are the words of the prompt, or of the last message of a conversation."""

import re

from lmwire_protocol import Chat, Generate, Load, Message, RequestError, Tokenize

CONTEXT_LEN = 1 << 20
"""Context length without a smaller one in the load; also the size of the vocabulary."""


def words(text: str) -> list[str]:
    """Split a text into words, each with the space after it."""
    return re.findall(r"\S+\s*|\s+", text)


def said(request: Load | Generate | Chat | Tokenize) -> str:
    """Return a load's path, a prompt, or the text of the last message."""
    if isinstance(request, Load):
        return request.path
    if isinstance(request, Generate):
        return request.prompt if isinstance(request.prompt, str) else "".join(f"{id} " for id in request.prompt)
    if isinstance(request, Tokenize) and request.messages is None:
        return request.prompt or "".join(f"{id} " for id in request.token_ids or ())
    assert request.messages
    return told_of(request.messages[-1])


def told_of(message: Message, path: str = "", *, strict: bool = False) -> str:
    """Return a message's text, with a note for each image and sound; see `prompts.turns.message_text`.

    Args:
        message: The message.
        path: Place of the message in the request, for errors.
        strict: Refuse media that cannot be read.
    """
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    from ..prompts.turns import message_text

    return message_text(message, path, strict=strict)


def prompt_words(request: Generate | Chat, context_len: int) -> list[str]:
    """Return the words of the prompt, at least one, with the answer's `prefix`, after `truncate`.

    Args:
        request: The request.
        context_len: Context length.

    Raises:
        RequestError: invalid_request, context_overflow.
    """
    prompt = _words_of(request)
    if not prompt:
        raise RequestError("invalid_request", "prompt: is empty; give the model something", field="prompt")
    return _fit(request, prompt, context_len)


def echo(request: Generate | Chat, context_len: int) -> list[str]:
    """Return the words that an answer can repeat, at least one: the prompt without `prefix`.

    Args:
        request: The request.
        context_len: Context length.
    """
    return _fit(request, words(said(request)) or [""], context_len)


def tokenize(request: Tokenize) -> tuple[list[int], str]:
    """Return a prompt's tokens, which are numbered from 0, and its text. The text of a token is its number."""
    prompt = _words_of(request)
    if request.token_ids is not None:
        return request.token_ids, "".join(prompt)
    return list(range(len(prompt))), "".join(prompt)


def _fit(request: Generate | Chat, prompt: list[str], context_len: int) -> list[str]:
    if len(prompt) <= context_len and request.truncate == "none":
        return prompt
    from ..prompts.truncation import truncate_prompt

    return truncate_prompt(request, prompt, context_len)


def _words_of(request: Generate | Chat | Tokenize) -> list[str]:
    if isinstance(request, Generate):
        files = [f"{file.name}\n{file.text}\n" for file in request.context_files]
        return [word for text in (*files, said(request), request.suffix or "") for word in words(text)]
    if isinstance(request, Tokenize) and request.messages is None:
        return words(said(request))
    return words(said(request) + request.prefix) or [""]  # an empty turn is one token, for the markers of its template
