"""Whole vectors, put together from their pieces."""

import base64
import sys
from array import array
from collections.abc import Iterable

from lmwire_protocol import events

from .errors import LmwireError


def whole_vectors(pieces: Iterable[events.Embedding], count: int) -> list["array[float]"]:
    """The vectors of a request that has ended, in the order of its inputs.

    Raises:
        LmwireError: they are not all there.
    """
    vectors = [array("f") for _ in range(count)]
    dims = [-1] * count
    for piece in pieces:
        if piece.index >= count or piece.offset != len(vectors[piece.index]):
            raise LmwireError(f"the worker sent a piece of vector {piece.index} out of its order")
        vectors[piece.index].extend(_numbers(piece.embedding))
        dims[piece.index] = piece.dims
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
