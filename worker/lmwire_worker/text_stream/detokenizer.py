"""Turn tokens into text one at a time, in constant time, and never split a character.

mlx-lm's streaming detokenizers store the whole text, and drop the first space of a completion. These detokenizers
return the same text for an answer, and keep the first space of a continuation.
"""

import codecs
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ..models.tokenizer import Tokenizer

CONTEXT_TOKENS: Final = 8
"""Number of earlier tokens to decode again, for tokenizers whose tokens' text depends on earlier tokens."""
_REPLACEMENT: Final = "\ufffd"
"""Character that decoders put in the place of an unfinished one."""


class Detokenizer(Protocol):
    """Turns the tokens of one row into text."""

    def add(self, token: int) -> str:
        """Add a token, and return the text that became certain."""
        ...

    def flush(self, *, is_cut: bool = False) -> str:
        """Return the remaining text at the end of a text.

        Args:
            is_cut: Whether the text ends before the model ended it. An unfinished character is left out then, and
                becomes U+FFFD otherwise.
        """
        ...


def make_detokenizers(tokenizer: Tokenizer) -> Callable[[Sequence[int] | None], Detokenizer]:
    """Return a function that makes a detokenizer for a row.

    The function takes the prompt's tokens if the text continues the prompt. It takes None for a new answer, whose first
    space comes from the tokenizer and is dropped.
    """
    to_bytes, kind = token_bytes(tokenizer), tokenizer.kind
    if kind == "other":
        return lambda prompt: _WindowDetokenizer(tokenizer.decode, prompt or ())
    is_trimmed, trims_again = kind != "sentencepiece", kind != "byte_level"
    return lambda prompt: _ByteDetokenizer(to_bytes, trims=prompt is None and is_trimmed, trims_again=trims_again)


def token_bytes(tokenizer: Tokenizer) -> Callable[[int], bytes]:
    """Return a function that returns a token's bytes. If they depend on other tokens, they are those of it alone."""
    text_of = tokenizer.convert_ids_to_tokens
    if tokenizer.kind == "byte_level":
        added = {str(token) for token in tokenizer.added_tokens_decoder.values()}
        return _TokenBytes(text_of, lambda text: text.encode() if text in added else _from_byte_level(text)).__getitem__
    if tokenizer.kind == "other":
        return lambda token: tokenizer.decode([token]).encode()
    return _TokenBytes(text_of, _from_piece).__getitem__


class _TokenBytes(dict[int, bytes]):
    """The bytes of each token, computed on first use: a text uses a small part of the vocabulary."""

    def __init__(self, text_of: Callable[[int], str | None], convert: Callable[[str], bytes]) -> None:
        super().__init__()
        self._text_of = text_of
        self._convert = convert

    def __missing__(self, token: int) -> bytes:
        # A model's vocabulary may be padded beyond its tokenizer's, and a tokenizer's may have gaps.
        known = self._text_of(token)
        self[token] = value = b"" if known is None else self._convert(known)
        return value


def _byte_level_alphabet() -> dict[str, int]:
    """Return GPT-2's alphabet of bytes: printable Latin-1 is unchanged, and other bytes are U+0100 and following.

    See https://github.com/openai/gpt-2/blob/master/src/encoder.py.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_LEVEL: Final = _byte_level_alphabet()


def _from_byte_level(text: str) -> bytes:
    if all(character in BYTE_LEVEL for character in text):
        return bytes(BYTE_LEVEL[character] for character in text)
    return text.encode()


def _from_piece(text: str) -> bytes:
    """Return the bytes of a token of SentencePiece; `<0x41>` is a byte."""
    return bytes([int(text[3:5], 16)]) if text.startswith("<0x") else text.replace("\u2581", " ").encode()


class _ByteDetokenizer:
    """A detokenizer for vocabularies whose tokens are byte strings."""

    def __init__(self, to_bytes: Callable[[int], bytes], *, trims: bool, trims_again: bool) -> None:
        self._to_bytes = to_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._trims = trims
        self._trims_again = trims_again  # SentencePiece: until anything but spaces came

    def add(self, token: int) -> str:
        text = self._decoder.decode(self._to_bytes(token))
        return self._trim(text) if self._trims else text

    def flush(self, *, is_cut: bool = False) -> str:
        text = "" if is_cut else self._decoder.decode(b"", final=True)
        return self._trim(text) if self._trims else text

    def _trim(self, text: str) -> str:
        if not text:
            return text
        trimmed = text.removeprefix(" ")
        self._trims = self._trims_again and not trimmed
        return trimmed


class _WindowDetokenizer:
    """A detokenizer for any other tokenizer: decodes the newest tokens again and returns the new text."""

    def __init__(self, decode: Callable[[list[int]], str], prompt: Sequence[int]) -> None:
        self._decode = decode
        self._tokens = list(prompt[-CONTEXT_TOKENS:])
        self._shown = decode(self._tokens) if self._tokens else ""

    def add(self, token: int) -> str:
        self._tokens.append(token)
        text = self._decode(self._tokens)
        # An unfinished character; or a space, which some tokenizers drop before what comes next.
        if text.endswith((_REPLACEMENT, " ")) and len(self._tokens) < 4 * CONTEXT_TOKENS:
            return ""
        return self._take(text)

    def flush(self, *, is_cut: bool = False) -> str:
        rest = self._take(self._decode(self._tokens))
        return rest.rstrip(_REPLACEMENT) if is_cut else rest

    def _take(self, text: str) -> str:
        new = text[len(self._shown) :]
        if len(self._tokens) >= 2 * CONTEXT_TOKENS:
            del self._tokens[:-CONTEXT_TOKENS]
            text = self._decode(self._tokens)
        self._shown = text
        return new
