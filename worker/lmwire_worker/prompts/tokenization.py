"""Text to tokens, after it is certain that they fit: into the context, and into memory while they are made."""

import json
import math
import unicodedata
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Literal

import mlx.core as mx
import numpy as np
from mlx_lm.tokenizer_utils import TokenizerWrapper
from transformers import TokenizersBackend
from transformers.convert_slow_tokenizer import bytes_to_unicode

from lmwire_protocol import RequestError

from ..models.memory_budget import format_bytes
from .truncation import tokenize_ends

LARGE_CHARACTERS: Final = 2**15
"""A shorter text is tokenized in milliseconds, and is not looked at before."""
BYTES_EACH: Final = 160
"""Memory that tokenizing takes for each byte of text, measured."""
KEEPING: Final = ("Split", "Digits", "Punctuation", "ByteLevel", "Metaspace")
"""Steps before the model that drop nothing, unless they are told to remove what they split at."""


class Encoder:
    """A model's tokenizer. May be called from any thread.

    Args:
        tokenizer: The model's own.
        context_len: Tokens of a prompt, at most.
        budget: Bytes that the model and its requests may take together.
    """

    def __init__(self, tokenizer: TokenizerWrapper, context_len: float = math.inf, budget: float = math.inf) -> None:
        self.tokenizer = tokenizer
        self._context_len = context_len
        self._budget = budget

    def encode(self, text: str, *, begins: bool, whole: bool) -> list[int]:
        """Return a text's tokens.

        Args:
            text: The prompt's.
            begins: Add what the tokenizer puts around a text.
            whole: Tokenize a text even if it cannot fit into the context.

        Raises:
            RequestError: context_overflow, out_of_memory.
        """
        large = len(text) >= LARGE_CHARACTERS
        if large and not whole and (least := self._least.tokens(text)) > self._context_len:
            problem = f"the prompt has at least {least} tokens, and the context holds {self._context_len}"
            raise RequestError("context_overflow", f"{problem}; shorten it, or send `truncate`")
        return self._tokenize(text, begins=begins)

    def encode_ends(self, text: str, *, begins: bool, truncate: Literal["left", "middle"]) -> list[int]:
        """Return the tokens of a text that is cut if it does not fit: of a large one, those of its ends alone.

        Args:
            text: The prompt's.
            begins: Add what the tokenizer puts around a text.
            truncate: What is left out of the text.

        Raises:
            RequestError: out_of_memory.
        """
        ends = None
        if len(text) >= LARGE_CHARACTERS and self._context_len != math.inf:
            ends = tokenize_ends(text, self._tokenize, int(self._context_len), truncate)
        if ends is None:
            return self._tokenize(text, begins=begins)
        before, after = self._around if begins else ([], [])
        return [*before, *ends[0], *ends[1], *after]

    @cached_property
    def _around(self) -> tuple[list[int], list[int]]:
        """The tokens that the tokenizer puts before and after a text."""
        bare, full = self._tokenize("a"), self._tokenize("a", begins=True)
        start = next((at for at in range(len(full)) if full[at : at + len(bare)] == bare), 0)
        return full[:start], full[start + len(bare) :]

    def _tokenize(self, text: str, *, begins: bool = False) -> list[int]:
        if len(text) < LARGE_CHARACTERS:
            return list(self.tokenizer.encode(text, add_special_tokens=begins))
        self._check_memory(len(text.encode()))
        inner = self.tokenizer._tokenizer
        if type(inner)._encode_plus is not TokenizersBackend._encode_plus:  # it has its own way
            return list(self.tokenizer.encode(text, add_special_tokens=begins))
        (encoded,) = inner.backend_tokenizer.encode_batch_fast([text], add_special_tokens=begins)
        return encoded.ids

    def _check_memory(self, size: int) -> None:
        need, free = BYTES_EACH * size, self._budget - mx.get_active_memory()
        if need > free:
            problem = f"to tokenize {size:,} bytes of text takes {format_bytes(need)}"
            there_is = f"{format_bytes(max(int(free), 0))} of {format_bytes(int(self._budget))} are free"
            raise RequestError("out_of_memory", f"{problem}, and {there_is}; send less text")

    @cached_property
    def _least(self) -> "Least":
        return Least(self.tokenizer)


class Least:
    """How many tokens a text has at least.

    No token stands for more bytes than the longest in the vocabulary that holds any of them. So each byte of a text
    counts as one of the longest token that holds that byte, and the sum is never above the text's tokens.

    Args:
        tokenizer: The model's own. Of one that may drop or rewrite text, nothing is certain.
    """

    def __init__(self, tokenizer: TokenizerWrapper) -> None:
        self._bytes: Callable[[str], bytes | None] = _nothing
        backend = getattr(tokenizer._tokenizer, "backend_tokenizer", None)
        if backend is None or any(token.lstrip or token.rstrip for token in tokenizer.added_tokens_decoder.values()):
            return
        vocabulary = backend.get_vocab(with_added_tokens=True)
        model, before = _state(backend.model), _steps(_state(backend.pre_tokenizer))
        known = all(step["type"] in KEEPING and step.get("behavior") != "Removed" for step in before)
        if model["type"] != "BPE" or model.get("dropout") or not known:
            return
        normal = _steps(_state(backend.normalizer))
        if any(step["type"] == "ByteLevel" for step in before):
            found = _byte_level(normal, vocabulary)
        else:
            found = _sentence_pieces(normal, before, vocabulary, falls_back=bool(model.get("byte_fallback")))
        if found is not None:
            self._bytes, tokens = found
            added = [str(token).encode() for token in tokenizer.added_tokens_decoder.values()]
            self._shares = 1 / _longest(tokens + added)

    def tokens(self, text: str) -> int:
        """Return a number of tokens that the text certainly has; 0 where nothing is certain."""
        data = self._bytes(text)
        if data is None:
            return 0
        counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        return math.floor(float(counts @ self._shares))


Found = tuple[Callable[[str], bytes | None], list[bytes]]
"""A text's bytes as the tokenizer's model sees them, and the bytes that its tokens stand for."""


def _byte_level(normal: list[dict[str, Any]], vocabulary: dict[str, int]) -> Found | None:
    letters = {letter: byte for byte, letter in bytes_to_unicode().items()}
    if not letters.keys() <= vocabulary.keys() or normal not in ([], [{"type": "NFC"}]):
        return None
    tokens = [
        bytes(map(letters.__getitem__, token)) if letters.keys() >= set(token) else token.encode()
        for token in vocabulary
    ]
    return (_bytes if not normal else _composed_bytes), tokens


def _sentence_pieces(
    normal: list[dict[str, Any]], before: list[dict[str, Any]], vocabulary: dict[str, int], *, falls_back: bool
) -> Found | None:
    fallbacks = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
    prepends = all(step["type"] == "Prepend" or _writes_spaces(step) for step in normal)
    if not falls_back or not fallbacks.keys() <= vocabulary.keys() or not prepends:
        return None
    writes = any(map(_writes_spaces, normal)) or any(step["type"] == "Metaspace" for step in before)
    tokens = [fallbacks.get(token) or token.encode() for token in vocabulary]
    return (_marked_bytes if writes else _bytes), tokens


def _writes_spaces(step: dict[str, Any]) -> bool:
    return step["type"] == "Replace" and step.get("pattern") == {"String": " "} and step.get("content") == "▁"


def _longest(tokens: list[bytes]) -> np.ndarray:
    """[256]: of each byte, how long the longest token is that holds it."""
    longest = np.ones(256)
    for token in sorted(tokens, key=len):
        longest[np.frombuffer(token, np.uint8)] = max(len(token), 1)
    return longest


def _state(part: Any) -> dict[str, Any]:
    """Return how a part of a tokenizer is configured."""
    if type(part).__name__ == "BPE":  # its whole state holds the vocabulary
        return {"type": "BPE", "dropout": part.dropout, "byte_fallback": part.byte_fallback}
    if part is None or type(part).__name__ in ("Unigram", "WordPiece", "WordLevel"):
        return {"type": type(part).__name__}
    return json.loads(part.__getstate__())


def _steps(state: dict[str, Any]) -> list[dict[str, Any]]:
    if state["type"] == "NoneType":
        return []
    inner = state.get("pretokenizers") or state.get("normalizers")
    return [state] if inner is None else [step for part in inner for step in _steps(part)]


def _nothing(text: str) -> None:
    return None


def _bytes(text: str) -> bytes:
    return text.encode()


def _composed_bytes(text: str) -> bytes | None:
    return text.encode() if text.isascii() or unicodedata.is_normalized("NFC", text) else None


def _marked_bytes(text: str) -> bytes:
    return text.replace(" ", "▁").encode()
