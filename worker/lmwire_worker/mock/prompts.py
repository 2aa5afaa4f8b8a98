"""Prompts of the mock: the tokens are the words of the prompt, or of the last message of a conversation."""

import re
from typing import Final

from lmwire_protocol import Chat, Generate, Load, Message, RequestError, Tokenize

CONTEXT_LEN = 1 << 20
"""Context length without a smaller one in the load; also the size of the vocabulary."""
_VOCABULARY_CHARACTERS: Final = 1 << 20
"""Length of the texts after which the words are numbered anew."""


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
        return request.prompt or ""
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


class Vocabulary:
    """Words of the texts that `tokenize` has read. A word's id is the number of different words before it."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._characters = 0

    def tokenize(self, request: Tokenize) -> tuple[list[int], str]:
        """Return a prompt's tokens and its text. The text of an id without a word is its number."""
        if request.token_ids is not None:
            known = list(self._ids)
            texts = (known[id] if id < len(known) else f"{id} " for id in request.token_ids)
            return request.token_ids, "".join(texts)
        prompt = _words_of(request)
        if self._characters > _VOCABULARY_CHARACTERS:  # here, so that the words of the last text are always known
            self._ids.clear()
            self._characters = 0
        ids = [self._ids.setdefault(word, len(self._ids)) for word in prompt]
        self._characters += sum(map(len, prompt))
        return ids, "".join(prompt)


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
