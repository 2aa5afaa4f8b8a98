"""Tokenization of what may take long in a process of its own, which ends with its request or at a limit.

Texts of usual length are tokenized in the worker, if the tokenizer's steps are known to take linear time.
"""

import base64
import json
from array import array
from typing import Any, Final

from lmwire_protocol import RequestError

from ..models.tokenizer import Tokenizer
from ..models.tokenizer_program import (
    LINEAR_TOKEN_CHARACTERS,
    LINEAR_WORD_CHARACTERS,
    MAX_STRIPPING_TOKENS,
    steps_are_linear,
)
from ..sandbox import LimitExceeded, Limits, Sandbox

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
        self._small, self._large = (Sandbox(self._describe, start) for _ in range(2))

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
            answer = (self._small if is_small else self._large).ask(question, limits)
        except LimitExceeded as limit:
            raise _failure(field, f"{limit} for it") from None
        if error := answer.get("error"):
            raise _failure(field, f"fails on it ({error})")
        return answer

    def _describe(self) -> dict[str, Any]:
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
