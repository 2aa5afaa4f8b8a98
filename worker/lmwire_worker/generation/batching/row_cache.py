"""What the layers keep of one row, alone or among others, taken out without the rest of the batch."""

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
    """See `prefix_cache.Source`. Copies are made when they are evaluated.

    Args:
        layers: The caches that the row is in.
        index: Its place among their rows.
        length: Its tokens that they hold.
    """

    def __init__(self, layers: Sequence[Any], index: int, length: int) -> None:
        self._parts = list(flatten_caches(layers))
        self._index = index
        self.length = length

    @property
    def complete(self) -> bool:
        """Whether the layers hold the row's tokens: a model's own code may keep them elsewhere."""
        return all(
            not part.empty() and (not _is_sliceable(part) or self._end(part) >= self.length) for part in self._parts
        )

    def slices(self, start: int, stop: int) -> Slices:
        """See `Source.slices`."""
        return [self._arrays(part, start, stop) for part in self._parts if _is_sliceable(part)]

    def snapshot(self) -> list[Any]:
        """See `Source.snapshot`."""
        return [_detached(copy_row(part, self._index)) for part in self._parts if not _is_sliceable(part)]

    def copy(self, layout: CacheSchema) -> list[Any]:
        """The model's caches with this row alone."""
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
    """The cache with arrays that keep nothing else alive."""
    if isinstance(part, RotatingKVCache) and (passed := part._idx - part.max_size) > 0:
        # Of a prompt's slice it holds all until the next one comes, and then no more than this.
        part.keys, part.values = (part._trim(passed, array) for array in (part.keys, part.values))
        part._idx = part.max_size
    part.state = tree_map(lambda value: mx.contiguous(value) if isinstance(value, mx.array) else value, part.state)
    return part
