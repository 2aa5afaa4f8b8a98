"""What the mock's model is told: a prompt's tokens are its words, and of a conversation it hears the last message."""

import re

from lmwire_protocol import Chat, Generate, Load, Message, RequestError, Tokenize

CONTEXT_LEN = 1 << 20
"""Tokens of a prompt and its answer, unless a load says less; the vocabulary is as large."""


def words(text: str) -> list[str]:
    """A text's words, each with the space behind it."""
    return re.findall(r"\S+\s*|\s+", text)


def said(request: Load | Generate | Chat | Tokenize) -> str:
    """A load's path, a prompt, or the last message."""
    if isinstance(request, Load):
        return request.path
    if isinstance(request, Generate):
        return request.prompt if isinstance(request.prompt, str) else "".join(f"{id} " for id in request.prompt)
    if isinstance(request, Tokenize) and request.messages is None:
        return request.prompt or ""
    assert request.messages
    return told_of(request.messages[-1])


def told_of(message: Message, path: str = "", *, strict: bool = False) -> str:
    """A message's text, with a note of images and sounds; see `text.media.message_text`."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    from ..prompts.media_notes import message_text  # what a text model is told, which needs no model library

    return message_text(message, path, strict=strict)


def prompt_words(request: Generate | Chat, context_len: int) -> list[str]:
    """The words of the prompt, at least one, and the reply's `prefix` among them; what is left of it with `truncate`.

    Raises:
        RequestError: invalid_request, context_overflow.
    """
    prompt = _words_of(request)
    if not prompt:
        raise RequestError("invalid_request", "prompt: is empty; give the model something", field="prompt")
    return _fit(request, prompt, context_len)


def echo(request: Generate | Chat, context_len: int) -> list[str]:
    """The words that an answer can repeat, at least one: those of the prompt without `prefix`."""
    return _fit(request, words(said(request)) or [""], context_len)


def tokenize(request: Tokenize) -> tuple[list[int], str]:
    """A prompt's tokens, each named by its place, and its text."""
    prompt = _words_of(request)
    return list(range(len(prompt))), "".join(prompt)


def _fit(request: Generate | Chat, prompt: list[str], context_len: int) -> list[str]:
    if len(prompt) <= context_len and request.truncate == "none":
        return prompt
    from ..prompts.truncation import truncate_prompt  # the text lane's own, which knows no model library

    return truncate_prompt(request, prompt, context_len)


def _words_of(request: Generate | Chat | Tokenize) -> list[str]:
    if isinstance(request, Generate) or (isinstance(request, Tokenize) and request.messages is None):
        return words(said(request))
    return words(said(request) + request.prefix) or [""]  # an empty turn is a token, as a template's markers are
