"""How far rows' positions are behind their tokens: some models give all tokens of an image few positions."""

from typing import Any

import mlx.core as mx


class RopeDelta:
    """One number for each row, in the form of a cache, so that it goes where the row goes.

    It follows from the prompt's images, so nothing of it is kept of earlier prompts.

    Args:
        deltas: int32 [rows, 1]; of one row without images when absent.
    """

    derived = True
    """Worked out anew for each prompt; see `text.prefix_cache.layout.parts`."""

    def __init__(self, deltas: mx.array | None = None) -> None:
        self.deltas = mx.zeros((1, 1), mx.int32) if deltas is None else deltas

    @classmethod
    def merge(cls, caches: "list[RopeDelta]") -> "RopeDelta":
        """Those of several rows."""
        return cls(mx.concatenate([cache.deltas for cache in caches]))

    def extend(self, other: "RopeDelta") -> None:
        """Takes further rows in."""
        self.deltas = mx.concatenate([self.deltas, other.deltas])

    def filter(self, indices: Any) -> None:
        """Keeps these rows."""
        self.deltas = self.deltas[mx.array(indices)]

    def extract(self, index: int) -> "RopeDelta":
        """That of one row."""
        return RopeDelta(self.deltas[index : index + 1])

    @property
    def state(self) -> list[mx.array]:
        """What is to be evaluated."""
        return [self.deltas]

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return self.deltas.nbytes

    def empty(self) -> bool:
        """Whether nothing is known: never."""
        return False
