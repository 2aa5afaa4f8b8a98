"""What the mock's model is told: a prompt's tokens are its words, and of a conversation it hears the last message."""

import re

from lmwire_protocol import Chat, Generate, Load, RequestError, TextPart, Tokenize

CONTEXT_LEN = 1 << 20
"""Tokens of a prompt and its answer; the vocabulary is as large."""


def words(text: str) -> list[str]:
    """A text's words, each with the space behind it."""
    return re.findall(r"\S+\s*|\s+", text)


def said(request: Load | Generate | Chat | Tokenize) -> str:
    """A load's path, a prompt, or the last message: its text, and a note for each image or sound."""
    if isinstance(request, Load):
        return request.path
    if isinstance(request, Generate):
        return request.prompt if isinstance(request.prompt, str) else "".join(f"{id} " for id in request.prompt)
    if isinstance(request, Tokenize) and request.messages is None:
        return request.prompt or ""
    assert request.messages
    content = request.messages[-1].content
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text if isinstance(part, TextPart) else _note(part) for part in content)


def prompt_words(request: Generate | Chat) -> list[str]:
    """The words that the model is told, at least one. The reply's `prefix` is not among them.

    Raises:
        RequestError: invalid_request, context_overflow.
    """
    told = words(said(request))
    if not told and isinstance(request, Generate):
        raise RequestError("invalid_request", "the prompt is empty", field="prompt")
    if len(told) >= CONTEXT_LEN:
        raise RequestError("context_overflow", f"the prompt has {len(told)} tokens, the context {CONTEXT_LEN}")
    return told or [""]  # an empty message is a token all the same, as a template's markers are


def tokenize(request: Tokenize) -> tuple[list[int], str]:
    """A prompt's tokens, each named by its place, and its text."""
    text = said(request) + request.prefix
    return list(range(len(words(text)))), text


def _note(part: object) -> str:
    return f"[1 {type(part).__name__.removesuffix('Part').lower()} was attached] "
