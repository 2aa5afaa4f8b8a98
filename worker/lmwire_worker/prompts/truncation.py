"""Truncation of prompts that are longer than the context. Imports no model library."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar

from lmwire_protocol import Chat, Generate, RequestError
from lmwire_protocol.imports import lazy_pattern

T = TypeVar("T")
Tokenize = Callable[[str], list[int]]

WORD_BOUNDARY: Final = lazy_pattern(r"[^\W_](?=[ \n\u3002\uff0c])")
"""The end of a word. Tokenizers split texts here: no pattern matches a letter or digit together with these characters,
and no SentencePiece token crosses the boundary. The tokens on one side do not depend on the text of the other."""
SEARCH_CHARACTERS: Final = 2**12
"""Characters that are searched for a word boundary."""
CHARACTERS_PER_TOKEN: Final = 8
"""First guess of a token's length. Most texts have fewer characters a token; runs of spaces have more."""
MARGIN_TOKENS: Final = 64
"""Tokens beyond those that the prompt keeps. A special token's text that the cut splits lies among them."""


def truncate_prompt(request: Generate | Chat, tokens: Sequence[T], context_len: int, bos: T | None = None) -> list[T]:
    """Return a request's prompt, truncated to the context if the request allows it.

    A truncated prompt leaves space for max_tokens, or for one token. `left` keeps the end of the prompt, and `middle`
    keeps its beginning and its end. A beginning-of-text token stays.

    Args:
        request: The request, which has `truncate` and `max_tokens`.
        tokens: The prompt's tokens.
        context_len: Maximum number of tokens of prompt and answer together.
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


def tokenize_ends(
    text: str, tokenize: Tokenize, context_len: int, truncate: Literal["left", "middle"]
) -> tuple[list[int], list[int]] | None:
    """Tokenize the beginning and the end of a text, such that `truncate_prompt` gives the same tokens as for all of it.

    Args:
        text: The text.
        tokenize: Returns a text's tokens.
        context_len: Maximum number of tokens of prompt and answer together.
        truncate: The part of the text that truncation drops.

    Returns:
        The tokens of the beginning and those of the end; None if both together would be the whole text.
    """
    half = context_len // 2 + 1
    first, last = (half, half) if truncate == "middle" else (1, context_len)
    beginning = _tokenize_beginning(text, tokenize, first + MARGIN_TOKENS)
    end = _tokenize_end(text, tokenize, last + MARGIN_TOKENS) if beginning else None
    if beginning is None or end is None or beginning[1] > end[1]:
        return None
    return beginning[0], end[0]


def _tokenize_beginning(text: str, tokenize: Tokenize, count: int) -> tuple[list[int], int] | None:
    """Return at least `count` tokens of a beginning, and its end in the text; None if the text is too short."""
    size = max(CHARACTERS_PER_TOKEN * count, SEARCH_CHARACTERS)
    while size < len(text):
        place = WORD_BOUNDARY.search(text, size, size + SEARCH_CHARACTERS)
        end = place.end() if place else size
        tokens = tokenize(text[:end])
        if len(tokens) >= count:
            return tokens, end
        size *= 2
    return None


def _tokenize_end(text: str, tokenize: Tokenize, count: int) -> tuple[list[int], int] | None:
    """Return tokens of an end, at least `count` after its first word, and its start; None if the text is too short."""
    size = max(CHARACTERS_PER_TOKEN * count, 2 * SEARCH_CHARACTERS)
    while size < len(text):
        start = len(text) - size
        place = WORD_BOUNDARY.search(text, start, start + SEARCH_CHARACTERS)
        tokens = tokenize(text[start:])
        unsure = len(tokenize(text[start : place.end()])) if place else 0
        if len(tokens) - unsure >= count:
            return tokens, start
        size *= 2
    return None
