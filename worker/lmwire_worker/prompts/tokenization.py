"""Tokenization of prompts, within the context length and the memory budget."""

import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Literal

import mlx.core as mx

from lmwire_protocol import RequestError

from ..models.device_memory import format_bytes
from ..models.tokenizer import Tokenizer
from ..process.cancellation import current_cancellation
from .isolated_tokenizer import MEMORY_PER_TEXT_BYTE, IsolatedTokenizer
from .truncation import tokenize_ends

if TYPE_CHECKING:
    from .token_lower_bound import TokenLowerBound

LARGE_CHARACTERS: Final = 2**15
"""Length from which a text is checked before it is tokenized. Shorter texts take milliseconds."""


class Encoder:
    """Tokenizes prompts within limits. Any thread may call it.

    Args:
        tokenizer: The model's tokenizer.
        context_len: Maximum number of tokens of a prompt.
        budget: Memory budget of the model and its requests, in bytes.
    """

    def __init__(self, tokenizer: Tokenizer, context_len: float = math.inf, budget: float = math.inf) -> None:
        self.tokenizer = tokenizer
        self.context_len = context_len
        """Maximum number of tokens of a prompt."""
        self._budget = budget
        self._isolated = None if tokenizer.backend_tokenizer is None else IsolatedTokenizer(tokenizer)
        """None for a tokenizer with code of its own, which the host trusts."""

    @property
    def is_quick(self) -> bool:
        """Return whether short texts certainly take no time, so that they need no thread."""
        return self._isolated is None or self._isolated.is_linear

    def encode(self, text: str, field: str, *, add_special_tokens: bool, allow_overflow: bool) -> list[int]:
        """Return a text's tokens.

        Args:
            text: The prompt's text.
            field: The field of the request that has it, for errors.
            add_special_tokens: Add the tokens that the tokenizer puts around a text.
            allow_overflow: Tokenize a text even if it cannot fit into the context.

        Raises:
            RequestError: invalid_request, context_overflow, out_of_memory.
            WorkCancelled: The request was cancelled.
        """
        large = len(text) >= LARGE_CHARACTERS
        if large and not allow_overflow and (least := self._lower_bound.tokens(text)) > self.context_len:
            problem = f"the prompt has at least {least} tokens, and the context holds {self.context_len}"
            raise RequestError("context_overflow", f"{problem}; shorten it, or send `truncate`")
        return self._tokenize(text, field, add_special_tokens=add_special_tokens)

    def encode_ends(
        self, text: str, field: str, *, add_special_tokens: bool, truncate: Literal["left", "middle"]
    ) -> list[int]:
        """Return the tokens of a text that will be truncated to the context; of a large text, only those at its ends.

        Args:
            text: The prompt's text.
            field: The field of the request that has it, for errors.
            add_special_tokens: Add the tokens that the tokenizer puts around a text.
            truncate: The part of the text that truncation drops.

        Raises:
            RequestError: invalid_request, out_of_memory.
            WorkCancelled: The request was cancelled.
        """
        ends = None
        if len(text) >= LARGE_CHARACTERS and self.context_len != math.inf:
            ends = tokenize_ends(text, partial(self._tokenize, field=field), int(self.context_len), truncate)
        if ends is None:
            return self._tokenize(text, field, add_special_tokens=add_special_tokens)
        before, after = self.surrounding_tokens if add_special_tokens else ([], [])
        return [*before, *ends[0], *ends[1], *after]

    def decode(self, tokens: list[int], field: str) -> str:
        """Return the text of tokens, special ones included.

        Args:
            tokens: The tokens.
            field: The field of the request that has them, for errors.

        Raises:
            RequestError: invalid_request.
            WorkCancelled: The request was cancelled.
        """
        if self._isolated is not None:
            return self._isolated.decode(tokens, field)
        return self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False)

    @cached_property
    def surrounding_tokens(self) -> tuple[list[int], list[int]]:
        """Tokens that the tokenizer puts before and after a text."""
        bare, full = self._tokenize("a"), self._tokenize("a", add_special_tokens=True)
        start = next((at for at in range(len(full)) if full[at : at + len(bare)] == bare), 0)
        return full[:start], full[start + len(bare) :]

    def _tokenize(self, text: str, field: str = "", *, add_special_tokens: bool = False) -> list[int]:
        current_cancellation().check()  # a prompt may have many parts
        if len(text) >= LARGE_CHARACTERS:
            self._check_memory(len(text.encode()))
        if self._isolated is not None and not self._isolated.is_quick(text):
            return self._isolated.encode(text, field, add_special_tokens=add_special_tokens)
        return self.tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def _check_memory(self, size: int) -> None:
        need, free = MEMORY_PER_TEXT_BYTE * size, self._budget - mx.get_active_memory()
        if need > free:
            problem = f"to tokenize {size:,} bytes of text takes {format_bytes(need)}"
            there_is = f"{format_bytes(max(int(free), 0))} of {format_bytes(int(self._budget))} are free"
            raise RequestError("out_of_memory", f"{problem}, and {there_is}; send less text")

    @cached_property
    def _lower_bound(self) -> "TokenLowerBound":
        from .token_lower_bound import TokenLowerBound  # needs numpy, and only large texts need it

        return TokenLowerBound(self.tokenizer)
