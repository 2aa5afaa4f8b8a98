"""The cache of one row of a batch, read without copying the other rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.cache import BatchKVCache, RotatingKVCache

from ..prefix_cache.cache_schema import CacheSchema, flatten_caches, is_sliceable
from ..prefix_cache.radix_tree import Slices
from .caches import copy_row


class RowCache:
    """See `prefix_cache.CacheSource`. Copies are made when they are evaluated.

    Args:
        layers: The caches of the batch.
        index: Index of the row in the batch.
        length: Number of the row's tokens in the caches.
    """

    def __init__(self, layers: Sequence[Any], index: int, length: int) -> None:
        self._parts = list(flatten_caches(layers))
        self._index = index
        self.length = length

    @property
    def complete(self) -> bool:
        """True if the caches hold all of the row's tokens. A model's own code may store them elsewhere."""
        return all(
            not part.empty() and (not _is_sliceable(part) or self._end(part) >= self.length) for part in self._parts
        )

    def slices(self, start: int, stop: int) -> Slices:
        """See `CacheSource.slices`."""
        return [self._arrays(part, start, stop) for part in self._parts if _is_sliceable(part)]

    def snapshot(self) -> list[Any]:
        """See `CacheSource.snapshot`."""
        return [_detached(copy_row(part, self._index)) for part in self._parts if not _is_sliceable(part)]

    def copy(self, layout: CacheSchema) -> list[Any]:
        """Return a copy of the row's caches in their single form."""
        return layout.build([self.slices(0, self.length)], self.snapshot(), self.length)

    def _arrays(self, part: Any, start: int, stop: int) -> list[mx.array]:
        padding = self._end(part) - self.length  # on the left
        row = slice(self._index, self._index + 1)
        arrays = (part.keys, part.values) if isinstance(part.keys, mx.array) else (*part.keys, *part.values)
        return [mx.contiguous(array[row, :, padding + start : padding + stop]) for array in arrays]

    @staticmethod
    def _end(part: Any) -> int:
        return part._idx if isinstance(part, BatchKVCache) else part.offset


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The cache of a row at one moment. It must be used before the batch computes anything else."""

    tokens: list[int]
    """The tokens that the cache holds."""
    cache: RowCache


def _is_sliceable(part: Any) -> bool:
    return isinstance(part, BatchKVCache) or is_sliceable(part)


def _detached(part: Any) -> Any:
    """Return the cache with arrays that share no memory with the batch."""
    if isinstance(part, RotatingKVCache) and (passed := part._idx - part.max_size) > 0:
        # After a chunk it holds all of the chunk; it drops what exceeds its window when the next tokens come.
        part.keys, part.values = (part._trim(passed, array) for array in (part.keys, part.values))
        part._idx = part.max_size
    part.state = tree_map(lambda value: mx.contiguous(value) if isinstance(value, mx.array) else value, part.state)
    return part
