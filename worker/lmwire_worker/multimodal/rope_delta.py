"""Offsets between the positions and the tokens of rows: some models give all tokens of an image few positions."""

from typing import Any

import mlx.core as mx


class RopeDelta:
    """One offset for each row, in the form of a cache, so that it goes wherever the row goes.

    It follows from the prompt's images, so nothing of it is cached between prompts.

    Args:
        deltas: int32 [rows, 1]; one row without images by default.
    """

    derived = True
    """Computed anew for each prompt; see `generation.caches.flatten_caches`."""

    def __init__(self, deltas: mx.array | None = None) -> None:
        self.deltas = mx.zeros((1, 1), mx.int32) if deltas is None else deltas

    @classmethod
    def merge(cls, caches: "list[RopeDelta]") -> "RopeDelta":
        """Return the offsets of several rows."""
        return cls(mx.concatenate([cache.deltas for cache in caches]))

    def extend(self, other: "RopeDelta") -> None:
        """Append further rows."""
        self.deltas = mx.concatenate([self.deltas, other.deltas])

    def filter(self, indices: Any) -> None:
        """Keep the rows at these indices."""
        self.deltas = self.deltas[mx.array(indices)]

    def extract(self, index: int) -> "RopeDelta":
        """Return the offset of one row."""
        return RopeDelta(self.deltas[index : index + 1])

    def prepare(self, **_: Any) -> None:
        """Expect padding after the next tokens, which moves no offset."""

    def finalize(self) -> None:
        """Return to tokens without padding."""

    @property
    def state(self) -> list[mx.array]:
        """Arrays to evaluate after a step."""
        return [self.deltas]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.deltas.nbytes

    def empty(self) -> bool:
        """Return whether nothing is cached: never."""
        return False
