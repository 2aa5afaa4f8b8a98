"""Events of `embed`."""

from .base import Count, Done, Event
from .generation import Usage


class Embedding(Event, tag="embedding", kw_only=True):
    """The vector of an input, or a part of it. It is whole when `offset` plus the part's length equals `dims`."""

    id: str
    index: Count
    """The index in `input` of the vector's input."""
    offset: Count = 0
    """The place in the vector at which this part begins."""
    dims: Count
    """Length of the whole vector."""
    embedding: str | list[float]
    """Base64 of little-endian float32, or numbers; at most 2,048 of them."""


class EmbedDone(Done, tag="done", kw_only=True):
    """The reply to `embed`."""

    count: Count
    """Number of vectors."""
    dimensions: Count
    """Length of each vector."""
    usage: Usage
