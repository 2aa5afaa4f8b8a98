"""Tokens to text, one at a time, at a cost that does not grow with the text, and never within a character.

mlx-lm's streaming detokenizers keep the whole text and drop the first space of a completion. These give the same
text for an answer, and a continuation as it is.
"""

import codecs
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from mlx_lm.tokenizer_utils import BPEStreamingDetokenizer, SPMStreamingDetokenizer, TokenizerWrapper

CONTEXT: Final = 8
"""Tokens that are decoded again, for a tokenizer whose tokens' text depends on the tokens before."""


class Detokenizer(Protocol):
    """One row's way from tokens to text."""

    def add(self, token: int) -> str:
        """The text that became certain with this token."""
        ...

    def flush(self) -> str:
        """The rest, for a text that ends here: an unfinished character is U+FFFD."""
        ...


def make_detokenizers(tokenizer: TokenizerWrapper) -> Callable[[Sequence[int] | None], Detokenizer]:
    """What makes a detokenizer for each row of a model.

    It is called with the prompt's tokens when the text continues the prompt, and with None when it is an answer of
    its own, whose first space is the tokenizer's and not the model's.
    """
    stock: Any = tokenizer.detokenizer
    to_bytes = token_bytes(tokenizer)
    if isinstance(stock, BPEStreamingDetokenizer):
        return lambda prompt: _Bytes(to_bytes, trims=prompt is None, trims_again=False)
    if isinstance(stock, SPMStreamingDetokenizer):
        return lambda prompt: _Bytes(to_bytes, trims=prompt is None and stock.trim_space, trims_again=True)
    return lambda prompt: _Decoded(tokenizer.decode, prompt or ())


def token_bytes(tokenizer: TokenizerWrapper) -> Callable[[int], bytes]:
    """What tells a token's own bytes; of some tokenizers, whose tokens' text depends on others, those it has alone."""
    stock: Any = tokenizer.detokenizer
    if isinstance(stock, BPEStreamingDetokenizer):
        added = {str(token) for token in tokenizer.added_tokens_decoder.values()}
        memo = _Memo(stock.tokenmap, lambda text: text.encode() if text in added else _from_byte_level(text))
        return memo.__getitem__
    if isinstance(stock, SPMStreamingDetokenizer):
        return _Memo(stock.tokenmap, lambda raw: raw.replace("\u2581".encode(), b" ")).__getitem__
    return lambda token: tokenizer.decode([token]).encode()


class _Memo(dict[int, bytes]):
    """Each token's bytes, worked out when first met: a vocabulary is large, and a text uses little of it."""

    def __init__(self, tokens: Sequence[Any], convert: Callable[[Any], bytes]) -> None:
        super().__init__()
        self._tokens = tokens
        self._convert = convert

    def __missing__(self, token: int) -> bytes:
        # A model's vocabulary may be padded beyond its tokenizer's, and a tokenizer's may have gaps.
        known = self._tokens[token] if token < len(self._tokens) else None
        self[token] = value = b"" if known is None else self._convert(known)
        return value


def _byte_level_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable Latin-1 stands for itself, the others for U+0100 onwards in their order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


_BYTE_LEVEL: Final = _byte_level_alphabet()


def _from_byte_level(text: str) -> bytes:
    if all(character in _BYTE_LEVEL for character in text):
        return bytes(_BYTE_LEVEL[character] for character in text)
    return text.encode()


class _Bytes:
    """For vocabularies whose tokens are bytes, joined as they are."""

    def __init__(self, to_bytes: Callable[[int], bytes], *, trims: bool, trims_again: bool) -> None:
        self._to_bytes = to_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._trims = trims
        self._trims_again = trims_again  # SentencePiece: as long as nothing but spaces came

    def add(self, token: int) -> str:
        text = self._decoder.decode(self._to_bytes(token))
        return self._trim(text) if self._trims else text

    def flush(self) -> str:
        text = self._decoder.decode(b"", final=True)
        return self._trim(text) if self._trims else text

    def _trim(self, text: str) -> str:
        if not text:
            return text
        trimmed = text.removeprefix(" ")
        self._trims = self._trims_again and not trimmed
        return trimmed


class _Decoded:
    """For any other tokenizer: decodes the newest tokens again and takes what is new."""

    def __init__(self, decode: Callable[[list[int]], str], prompt: Sequence[int]) -> None:
        self._decode = decode
        self._tokens = list(prompt[-CONTEXT:])
        self._shown = decode(self._tokens) if self._tokens else ""

    def add(self, token: int) -> str:
        self._tokens.append(token)
        text = self._decode(self._tokens)
        # An unfinished character; or a space, which some tokenizers drop before what comes next.
        if text.endswith(("\ufffd", " ")) and len(self._tokens) < 4 * CONTEXT:
            return ""
        return self._take(text)

    def flush(self) -> str:
        return self._take(self._decode(self._tokens))

    def _take(self, text: str) -> str:
        new = text[len(self._shown) :]
        if len(self._tokens) >= 2 * CONTEXT:
            del self._tokens[:-CONTEXT]
            text = self._decode(self._tokens)
        self._shown = text
        return new
