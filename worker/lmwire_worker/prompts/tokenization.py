"""Tokenization of prompts, within the context length, the memory budget and the time that a host waits.

Texts of usual length are tokenized in the worker, if the tokenizer's steps are known to take linear time. Others are
tokenized in a process of their own, which ends with its request or at a limit.
"""

import base64
import json
import math
from array import array
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

import mlx.core as mx

from lmwire_protocol import RequestError

from ..models.device_memory import format_bytes
from ..models.tokenizer import Tokenizer
from ..models.tokenizer_program import (
    LINEAR_TOKEN_CHARACTERS,
    LINEAR_WORD_CHARACTERS,
    MAX_STRIPPING_TOKENS,
    steps_are_linear,
)
from ..sandbox import LimitExceeded, Limits, Sandbox
from ..sandbox.process import current_cancellation
from .truncation import tokenize_ends

if TYPE_CHECKING:
    from .token_lower_bound import TokenLowerBound

LARGE_CHARACTERS: Final = 2**15
"""Length from which a text is checked before it is tokenized. Shorter texts take milliseconds."""


def check_token_ids(tokens: list[int], vocab_size: int, field: str) -> list[int]:
    """Return the token ids of a request, if the model has all of them.

    Args:
        tokens: The ids; at least one.
        vocab_size: Size of the model's vocabulary.
        field: The field that holds them, for errors.

    Raises:
        RequestError: invalid_request, with the place of the first id that the model lacks.
    """
    if max(tokens) >= vocab_size:
        index = next(index for index, token in enumerate(tokens) if token >= vocab_size)
        problem = f"{field}[{index}]: {tokens[index]} is not a token of this model, whose vocabulary has {vocab_size}"
        raise RequestError("invalid_request", problem, field=f"{field}[{index}]")
    return tokens


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


# Processes for what may take long.

QUICK_CHARACTERS: Final = 2**18
"""Maximum length of a text that the worker tokenizes itself. A known tokenizer takes less than a second for it."""
QUICK_TOKENS: Final = 2**13
"""Maximum number of tokens that the worker turns into text itself."""
SMALL_CHARACTERS: Final = 2**15
"""Length from which a text has a process that it shares with other such texts only."""
CPU_SECONDS: Final = 5.0
"""Processor time of any text, in seconds."""
CPU_SECONDS_PER_BYTE: Final = 20e-6
"""Further processor time for each byte of text, in seconds: some ten times what it takes."""
START_SECONDS: Final = 60.0
"""Processor time to load the tokenizer into its process, in seconds."""
MEMORY_BYTES: Final = 2**31
"""Memory of the process, in bytes, besides that for the text. A large vocabulary takes some hundred megabytes."""
MEMORY_PER_TEXT_BYTE: Final = 160
"""Memory that the tokenizer takes for each byte of text, in bytes, as measured."""


class IsolatedTokenizer:
    """A tokenizer's processes, which start on first use. Any thread may use it.

    Args:
        tokenizer: The model's tokenizer, of the tokenizers library.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._backend: Any = tokenizer.backend_tokenizer
        added = [token for token in tokenizer.added_tokens_decoder.values()]
        self._stripping = [str(token) for token in added if token.lstrip or token.rstrip or token.single_word]
        self._is_linear = len(self._stripping) <= MAX_STRIPPING_TOKENS and _is_linear(self._backend)
        start = Limits(START_SECONDS, MEMORY_BYTES)
        self._small, self.large = (Sandbox(self.describe, start) for _ in range(2))

    @property
    def is_linear(self) -> bool:
        """Return whether a usual text takes linear time, so that no process is needed for it."""
        return self._is_linear

    def is_quick(self, text: str) -> bool:
        """Return whether a text certainly takes less than a second."""
        return self._is_linear and len(text) <= QUICK_CHARACTERS and not any(token in text for token in self._stripping)

    def encode(self, text: str, field: str, *, add_special_tokens: bool) -> list[int]:
        """Return a text's tokens, computed in a process.

        Args:
            text: The text.
            field: The field of the request that has it, for errors.
            add_special_tokens: Add the tokens that the tokenizer puts around a text.

        Raises:
            RequestError: invalid_request: the tokenizer fails on the text, or takes too much time or memory.
            WorkCancelled: The request was cancelled.
        """
        question = {"subject": "encode", "text": text, "add_special_tokens": add_special_tokens}
        answer = self._ask(question, field, len(text.encode()), is_small=len(text) <= SMALL_CHARACTERS)
        return array("I", base64.b64decode(answer["tokens"])).tolist()

    def decode(self, tokens: list[int], field: str) -> str:
        """Return the text of tokens, special ones included. In the worker, if that certainly takes no time.

        Args:
            tokens: The tokens.
            field: The field of the request that has them, for errors.

        Raises:
            RequestError: invalid_request, as from `encode`.
            WorkCancelled: The request was cancelled.
        """
        if self._is_linear and len(tokens) <= QUICK_TOKENS:
            return self._backend.decode(tokens, skip_special_tokens=False)
        question = {"subject": "decode", "tokens": base64.b64encode(array("I", tokens)).decode()}
        return self._ask(question, field, 4 * len(tokens), is_small=len(tokens) <= QUICK_TOKENS)["text"]

    def _ask(self, question: dict[str, Any], field: str, size: int, *, is_small: bool) -> dict[str, Any]:
        limits = Limits(CPU_SECONDS + CPU_SECONDS_PER_BYTE * size, MEMORY_BYTES + MEMORY_PER_TEXT_BYTE * size)
        try:
            answer = (self._small if is_small else self.large).ask(question, limits)
        except LimitExceeded as limit:
            raise _failure(field, f"{limit} for it") from None
        if error := answer.get("error"):
            raise _failure(field, f"fails on it ({error})")
        return answer

    def describe(self) -> dict[str, Any]:
        """Return the task that opens the tokenizer in a sandbox."""
        return {"subject": "tokenizer", "tokenizer": self._backend.to_str()}


def _failure(field: str, problem: str) -> RequestError:
    sentence = f"{field}: this model's tokenizer {problem}; shorten it, or break up its longest runs of one character"
    return RequestError("invalid_request", sentence, field=field or None)


def _is_linear(backend: Any) -> bool:
    """Return whether a loaded tokenizer consists of parts that take linear time."""
    parts = (backend.normalizer, backend.pre_tokenizer, backend.post_processor, backend.decoder)
    if not all(steps_are_linear(json.loads(part.__getstate__())) for part in parts if part is not None):
        return False
    model = backend.model
    match type(model).__name__:
        case "BPE":
            return model.dropout is None
        case "WordPiece":
            return model.max_input_chars_per_word <= LINEAR_WORD_CHARACTERS
        case "Unigram":
            return max(map(len, backend.get_vocab())) <= LINEAR_TOKEN_CHARACTERS
        case kind:
            return kind == "WordLevel"
