"""A lower bound of a text's number of tokens, computed without tokenizing it."""

import json
import math
import unicodedata
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..models.tokenizer import Tokenizer
from ..text_stream.detokenizer import BYTE_LEVEL

LOSSLESS_STEPS: Final = ("Split", "Digits", "Punctuation", "ByteLevel", "Metaspace")
"""Pre-tokenizer steps that drop no text, unless their behavior is `Removed`."""


class TokenLowerBound:
    """A lower bound of texts' numbers of tokens, for one tokenizer.

    Each byte counts 1/n tokens, where n is the length of the longest token that contains the byte. A token of length m
    therefore counts at most 1, and the sum never exceeds the number of tokens.

    Args:
        tokenizer: The model's tokenizer. If it may drop or rewrite text, the bound is 0.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._bytes: Callable[[str], bytes | None] = _unknown
        backend = tokenizer.backend_tokenizer
        if backend is None or any(token.lstrip or token.rstrip for token in tokenizer.added_tokens_decoder.values()):
            return
        vocabulary = backend.get_vocab(with_added_tokens=True)
        model, before = _state(backend.model), _flatten_steps(_state(backend.pre_tokenizer))
        known = all(step["type"] in LOSSLESS_STEPS and step.get("behavior") != "Removed" for step in before)
        if model["type"] != "BPE" or model.get("dropout") or not known:
            return
        normal = _flatten_steps(_state(backend.normalizer))
        if any(step["type"] == "ByteLevel" for step in before):
            found = _byte_level(normal, vocabulary)
        else:
            found = _sentence_pieces(normal, before, vocabulary, falls_back=bool(model.get("byte_fallback")))
        if found is not None:
            self._bytes, tokens = found
            added = [str(token).encode() for token in tokenizer.added_tokens_decoder.values()]
            self._shares = 1 / _longest_token_lengths(tokens + added)

    def tokens(self, text: str) -> int:
        """Return a number of tokens that the text has at least; 0 if no bound is known."""
        data = self._bytes(text)
        if data is None:
            return 0
        counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        return math.floor(float(counts @ self._shares))


Found = tuple[Callable[[str], bytes | None], list[bytes]]
"""A function that returns a text's bytes as the tokenizer's model sees them, and the bytes of all tokens."""


def _byte_level(normal: list[dict[str, Any]], vocabulary: dict[str, int]) -> Found | None:
    letters = BYTE_LEVEL
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


def _longest_token_lengths(tokens: list[bytes]) -> np.ndarray:
    """Return [256]: for each byte, the length of the longest token that contains it."""
    longest = np.ones(256)
    for token in sorted(tokens, key=len):
        longest[np.frombuffer(token, np.uint8)] = max(len(token), 1)
    return longest


def _state(part: Any) -> dict[str, Any]:
    """Return the configuration of a part of a tokenizer."""
    if type(part).__name__ == "BPE":  # its whole state holds the vocabulary
        return {"type": "BPE", "dropout": part.dropout, "byte_fallback": part.byte_fallback}
    if part is None or type(part).__name__ in ("Unigram", "WordPiece", "WordLevel"):
        return {"type": type(part).__name__}
    return json.loads(part.__getstate__())


def _flatten_steps(state: dict[str, Any]) -> list[dict[str, Any]]:
    if state["type"] == "NoneType":
        return []
    inner = state.get("pretokenizers") or state.get("normalizers")
    return [state] if inner is None else [step for part in inner for step in _flatten_steps(part)]


def _unknown(text: str) -> None:
    return None


def _bytes(text: str) -> bytes:
    return text.encode()


def _composed_bytes(text: str) -> bytes | None:
    return text.encode() if text.isascii() or unicodedata.is_normalized("NFC", text) else None


def _marked_bytes(text: str) -> bytes:
    return text.replace(" ", "▁").encode()
