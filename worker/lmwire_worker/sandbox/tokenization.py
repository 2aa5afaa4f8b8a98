"""Tokenizers that may take any time and memory: a trial before the worker loads one, and its use for long texts."""

import base64
import itertools
from array import array
from collections.abc import Iterator
from typing import Any, Final

from tokenizers import Tokenizer

SAMPLE_CHARACTERS: Final = 2**12
"""Length of a run in a trial."""
TRIED_CHARACTERS: Final = 256
"""Maximum number of a tokenizer's own characters and texts that are tried."""
TRIED_TOKENS: Final = 2**10
"""Number of tokens that a trial turns into text."""
COMMON: Final = (
    " ",
    "a",
    "A",
    "1",
    "\n",
    "\t",
    "!",
    "é",
    "界",
    "\u0301",
    "\u200b",
    "a b ",
    "\r\n",
    "'s",
    "<tool_call>",
)
"""Texts that many prompts contain."""

_tokenizers: list[Tokenizer] = []
"""The sandbox's tokenizer: at most one."""


def set_tokenizer(tokenizer: str) -> dict[str, Any]:
    """Set the tokenizer that texts are tokenized with.

    Args:
        tokenizer: The tokenizer, as JSON of the tokenizers library.
    """
    _tokenizers[:] = [Tokenizer.from_str(tokenizer)]
    _bare(_tokenizers[0])
    return {}


def encode(text: str, add_special_tokens: bool) -> dict[str, Any]:
    """Return a text's `tokens`, or the `error` of the tokenizer.

    Args:
        text: The text.
        add_special_tokens: Add the tokens that the tokenizer puts around a text.
    """
    try:
        (encoded,) = _tokenizers[0].encode_batch_fast([text], add_special_tokens=add_special_tokens)
        return {"tokens": base64.b64encode(array("I", encoded.ids)).decode()}
    except BaseException as error:  # a panic in Rust is not of class Exception
        return {"error": _sentence(error)}


def decode(tokens: str) -> dict[str, Any]:
    """Return the `text` of tokens, special ones included, or the `error` of the tokenizer.

    Args:
        tokens: The tokens, in the form in which `encode` returns them.
    """
    try:
        ids = array("I", base64.b64decode(tokens)).tolist()
        return {"text": _tokenizers[0].decode(ids, skip_special_tokens=False)}
    except BaseException as error:
        return {"error": _sentence(error)}


def try_folder(folder: str, library: str, texts: list[str]) -> dict[str, Any]:
    """Load a model folder's tokenizer, and use it; return the `error`, empty if it works.

    Args:
        folder: The model's folder.
        library: Who loads it: `tokenizers`, from its tokenizer.json, or `transformers`, from whatever there is.
        texts: Texts of the tokenizer's own, such as its patterns.
    """
    try:
        tokenizer = _load(folder, library)
    except BaseException as error:
        return {"error": f"does not load: {_sentence(error)}"}
    for text in _samples(texts):
        try:
            (encoded,) = tokenizer.encode_batch_fast([text], add_special_tokens=True)
            tokenizer.decode(encoded.ids, skip_special_tokens=False)
        except BaseException as error:
            return {"error": f"fails on a text of {len(text):,} characters, {text[:20]!r}…: {_sentence(error)}"}
    tokenizer.decode(list(range(min(TRIED_TOKENS, tokenizer.get_vocab_size()))), skip_special_tokens=False)
    return {"error": ""}


def _load(folder: str, library: str) -> Tokenizer:
    if library == "tokenizers":
        tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    else:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False).backend_tokenizer
    return _bare(tokenizer)


def _bare(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer without padding and truncation, as a prompt needs it."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _samples(texts: list[str]) -> Iterator[str]:
    """Yield runs of common characters and of a tokenizer's own, each with an end at which a pattern may fail."""
    own = dict.fromkeys(itertools.chain.from_iterable(texts))
    for unit in [*COMMON, *itertools.islice([*own, *texts], TRIED_CHARACTERS)]:
        if unit:
            run = (unit * (SAMPLE_CHARACTERS // len(unit) + 1))[:SAMPLE_CHARACTERS]
            yield run
            yield f"{run}\x00!"


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
