"""Embedding vectors, assembled from the parts in which they arrive."""

import base64
import sys
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from lmwire_protocol import events

from ..errors import LmwireError


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
