"""The command `embed`."""

from typing import Annotated, Literal

from msgspec import Meta

from .. import events
from ..limits import INPUTS
from ..messages import ImagePart, TextPart, TokensPart
from .base import Command, Positive


class Embed(Command, frozen=True):
    """Compute an embedding of each input: a vector whose direction stands for its meaning."""

    name = "embed"
    done = events.EmbedDone
    streams = (events.Embedding,)

    input: Annotated[list[str | TextPart | ImagePart | TokensPart], Meta(min_length=1, max_length=INPUTS)]
    """Texts, tokens, and images if the model takes them. Each input gets its own vector."""
    normalize: bool = True
    """Scale each vector to length 1."""
    dimensions: Positive | None = None
    """Number of leading values to keep of each vector. Absent: all, which is also the highest value."""
    encoding: Literal["base64", "float"] = "base64"
    """Encoding of the vectors: base64 of little-endian float32, or JSON numbers."""
