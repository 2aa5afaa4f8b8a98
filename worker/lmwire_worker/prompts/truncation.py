"""Prompts that are too long: what is left out of them. It knows no model library."""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar

from lmwire_protocol import Chat, Generate, RequestError

T = TypeVar("T")
Tokenizer = Callable[[str], list[int]]

WORD_END: Final = re.compile(r"[^\W_](?=[ \n\u3002\uff0c])")
"""The end of a word. Tokenizers split texts here: their expressions match no letter or digit together with what follows
it here, and no token of SentencePiece's reaches across. So the tokens before it do not depend on the text after it, and
the other way round."""
WINDOW: Final = 2**12
"""Characters among which such a place is looked for."""
CHARACTERS_EACH: Final = 8
"""Characters of a token, as a first guess. Texts have fewer; runs of spaces have more."""
MARGIN: Final = 64
"""Tokens beyond those that are kept. What a cut leaves of a special token's text is among them."""


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


def tokenize_ends(
    text: str, tokenize: Tokenizer, context_len: int, truncate: Literal["left", "middle"]
) -> tuple[list[int], list[int]] | None:
    """Tokenize a beginning and an end of a text, which `fit` cuts to the same tokens as it does the whole.

    Args:
        text: The text.
        tokenize: Returns a text's tokens.
        context_len: Tokens of prompt and answer together, at most.
        truncate: What is left out of the text.

    Returns:
        The tokens of the beginning and those of the end, or None where these would be the whole text.
    """
    half = context_len // 2 + 1
    first, last = (half, half) if truncate == "middle" else (1, context_len)
    beginning = _tokenize_beginning(text, tokenize, first + MARGIN)
    end = _tokenize_end(text, tokenize, last + MARGIN) if beginning else None
    if beginning is None or end is None or beginning[1] > end[1]:
        return None
    return beginning[0], end[0]


def _tokenize_beginning(text: str, tokenize: Tokenizer, count: int) -> tuple[list[int], int] | None:
    """Return tokens of a beginning, `count` at least, and where it ends; None where the whole text has too few."""
    size = max(CHARACTERS_EACH * count, WINDOW)
    while size < len(text):
        place = WORD_END.search(text, size, size + WINDOW)
        end = place.end() if place else size
        tokens = tokenize(text[:end])
        if len(tokens) >= count:
            return tokens, end
        size *= 2
    return None


def _tokenize_end(text: str, tokenize: Tokenizer, count: int) -> tuple[list[int], int] | None:
    """Return tokens of an end, `count` of them after its first word, and where it begins; None as above."""
    size = max(CHARACTERS_EACH * count, 2 * WINDOW)
    while size < len(text):
        start = len(text) - size
        place = WORD_END.search(text, start, start + WINDOW)
        tokens = tokenize(text[start:])
        unsure = len(tokenize(text[start : place.end()])) if place else 0
        if len(tokens) - unsure >= count:
            return tokens, start
        size *= 2
    return None
