"""Tokenization of text in which the names of special tokens are ordinary text."""

import re
from collections.abc import Collection, Iterable
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from lmwire_protocol import RequestError

from .tokenization import Encoder

MAX_NAMES: Final = 4096
"""Maximum number of special tokens' names in a text: each name costs a call of the tokenizer."""
_GUARD: Final = "☺"
"""Text before a piece, whose tokens are removed: without it, SentencePiece puts a space there. It is the character of
Code Llama's reference code, https://github.com/meta-llama/codellama/blob/main/llama/tokenizer.py."""

_MAX_BRANCHES: Final = 32
"""Branches of the pattern, one within another. Names of real models have some five."""


class PlainTextEncoder:
    """Tokenizes text such that it has no special token. Any thread may call it.

    Args:
        encoder: The model's tokenizer, with its limits.
        names: Further tokens that no text may have, besides those that the tokenizer calls special.
    """

    def __init__(self, encoder: Encoder, names: Iterable[str] = ()) -> None:
        self._encoder = encoder
        tokenizer: Any = encoder.tokenizer
        special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
        self._name = re.compile(_start_of([name for name in {*special, *names} if len(name) > 1]))

    def encode(self, text: str, field: str, *, leads: bool = False, allow_overflow: bool = False) -> list[int]:
        """Return a text's tokens.

        Args:
            text: The text.
            field: The field of the request that has it, for errors.
            leads: Tokenize it like the beginning of a text, before which some tokenizers put a space.
            allow_overflow: Tokenize a text even if it cannot fit into the context.

        Raises:
            RequestError: invalid_request, context_overflow, out_of_memory.
        """
        first, *others = self._split(text, field)
        tokens = self._whole(first, field, allow_overflow) if leads else self._inner(first, field, allow_overflow)
        for piece in others:
            tokens += self._inner(piece, field, allow_overflow)
        return tokens

    def _split(self, text: str, field: str) -> list[str]:
        """Return the pieces of a text, cut after the first character of each name."""
        pieces: list[str] = []
        start = 0
        while match := self._name.search(text, start):
            if len(pieces) == MAX_NAMES:
                problem = f"{field}: has more than {MAX_NAMES:,} names of special tokens; shorten the text"
                raise RequestError("invalid_request", problem, field=field)
            pieces.append(text[start : match.start() + 1])
            start = match.start() + 1
        return [*pieces, text[start:]]

    def _whole(self, text: str, field: str, allow_overflow: bool) -> list[int]:
        return (
            self._encoder.encode(text, field, add_special_tokens=False, allow_overflow=allow_overflow) if text else []
        )

    def _inner(self, text: str, field: str, allow_overflow: bool) -> list[int]:
        """Return the tokens of a text that follows another."""
        if not text or not self._adds_space:
            return self._whole(text, field, allow_overflow)
        return self._whole(_GUARD + text, field, allow_overflow)[self._guard_tokens :]

    @cached_property
    def _guard_tokens(self) -> int:
        return len(self._whole(_GUARD, "", allow_overflow=True))

    @cached_property
    def _adds_space(self) -> bool:
        """Return whether the tokenizer puts a space before a text."""
        return self._whole(_GUARD + "a", "", allow_overflow=True)[self._guard_tokens :] != self._whole("a", "", True)


def _start_of(names: Collection[str], branches: int = 0) -> str:
    """Return a pattern that matches at the start of each name, in time that does not grow with the number of names.

    It is a trie: `re` would compare each name at each character, and hold all threads of the process meanwhile.
    """
    if "" in names:
        return ""
    if branches == _MAX_BRANCHES:
        return f"(?:{'|'.join(map(re.escape, names))})"
    alternatives: list[str] = []
    for _, group in groupby(sorted(names), key=itemgetter(0)):
        alike = [*group]
        first, last = alike[0], alike[-1]  # what they share, all share, since they are sorted
        length = next(
            (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
        )
        alternatives.append(re.escape(first[:length]) + _start_of([name[length:] for name in alike], branches + 1))
    return f"(?:{'|'.join(alternatives)})" if alternatives else "(?!)"
