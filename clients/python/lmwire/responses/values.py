"""Vectors, samples of speech, and tokens: the results of requests that have no stream."""

import base64
import binascii
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lmwire_protocol import events

from ..errors import LmwireError
from ..protocol.deltas import TokenDelta, ToolCallDelta

SAMPLE_BYTES: Final = 2
"""Bytes of a sample."""
_EMPTY_RATE: Final = 24_000
"""Sample rate in the file of a speech without samples."""


class Embeddings(NamedTuple):
    """The vectors of an embedding request."""

    vectors: list["array[float]"]
    """One for each input, in the inputs' order: float32 ("f"), which `numpy.asarray` takes without a copy."""
    usage: events.Usage


def assemble_vectors(parts: Iterable[events.Embedding], count: int) -> list["array[float]"]:
    """Assemble the vectors of a request that has ended, in the order of its inputs.

    Args:
        parts: The embedding events, in the order of their arrival.
        count: Number of inputs.

    Raises:
        LmwireError: The parts are out of order, or incomplete.
    """
    vectors = [array("f") for _ in range(count)]
    dims = [-1] * count
    for part in parts:
        if part.index >= count or part.offset != len(vectors[part.index]):
            raise LmwireError(f"the worker sent a part of vector {part.index} out of order")
        vectors[part.index].extend(_numbers(part.embedding))
        dims[part.index] = part.dims
    if dims != list(map(len, vectors)):
        raise LmwireError("the worker did not send all of its vectors")
    return vectors


def _numbers(embedding: str | list[float]) -> Iterable[float]:
    if isinstance(embedding, list):
        return embedding
    numbers = array("f", base64.b64decode(embedding))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def speech_samples(part: events.Audio) -> bytes:
    """Return the samples of a part: little-endian, 16 bits each, one channel.

    Raises:
        ValueError: The worker has sent something else.
    """
    try:
        return base64.b64decode(part.audio, validate=True)
    except binascii.Error as error:
        raise ValueError(f"audio: is not base64: {error}") from None


def assemble_wav(parts: Sequence[events.Audio]) -> bytes:
    """Return the parts of a speech as the content of a WAV file."""
    import io  # not needed by most programs, which would start later
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(SAMPLE_BYTES)
        writer.setframerate(parts[0].sample_rate if parts else _EMPTY_RATE)
        writer.writeframes(b"".join(map(speech_samples, parts)))
    return file.getvalue()


class Tokens(NamedTuple):
    """The tokens of a prompt."""

    ids: list[int]
    text: str
    """The text of the tokens. For a conversation, it is the prompt that the chat template makes."""


def assemble_tokens(deltas: Sequence[TokenDelta | ToolCallDelta]) -> Tokens:
    """Assemble the tokens of a `tokenize` request that has ended."""
    tokens = [delta for delta in deltas if isinstance(delta, TokenDelta)]
    ids = [token_id for delta in tokens for token_id in delta.token_ids]
    return Tokens(ids, "".join(delta.token for delta in tokens))
