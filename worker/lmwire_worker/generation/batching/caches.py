"""The caches of rows: their single form, their batched form, and one row of a batch read without the others."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_map
from mlx_lm.models.cache import (
    BatchKVCache,
    BatchRotatingKVCache,
    CacheList,
    KVCache,
    RotatingKVCache,
    make_prompt_cache,
)
from msgspec import Struct

from ..prefix_cache.cache_schema import CacheSchema, flatten_caches, is_sliceable
from ..prefix_cache.radix_tree import Slices

# A model's caches.


def supports_batching(model: nn.Module) -> bool:
    """Return whether all caches of a model have a batched form."""
    return all(hasattr(cache, "merge") for cache in flatten_caches(make_prompt_cache(model)))


def name_special_caches(caches: Iterable[Any]) -> str:
    """Return the kinds of caches that are not plain KV caches, as text; empty if all are plain."""
    return " and a ".join(sorted({type(cache).__name__ for cache in caches if type(cache) is not KVCache}))


def evaluate(caches: Iterable[Any]) -> None:
    """Wait until caches are computed."""
    mx.eval([cache.state for cache in caches])


# The forms of a cache.


def merge_caches(caches: list[list[Any]]) -> list[Any]:
    """Return the caches of rows as those of one batch, layer by layer. A row alone keeps its single form."""
    if len(caches) == 1:
        return list(caches[0])
    return [type(layers[0]).merge(list(layers)) for layers in zip(*caches, strict=True)]


def to_batched(cache: Any) -> Any:
    """Return the batched form of a cache."""
    if isinstance(cache, CacheList):
        return CacheList(*map(to_batched, cache.caches))
    return cache if hasattr(cache, "extend") else type(cache).merge([cache])


def to_single(cache: Any) -> Any:
    """Return the single form of a cache with one row."""
    if isinstance(cache, CacheList):
        return CacheList(*map(to_single, cache.caches))
    batched = isinstance(cache, BatchKVCache | BatchRotatingKVCache)
    return cache.extract(0) if batched and not cache.empty() else cache  # empty ones cannot be extracted


def copy_row(cache: Any, index: int) -> Any:
    """Return a copy of one row of a cache."""
    if isinstance(cache, CacheList):
        return CacheList(*(copy_row(part, index) for part in cache.caches))
    return cache.extract(index) if hasattr(cache, "extract") else copy.deepcopy(cache)


def append_empty_rows(cache: BatchKVCache, rows: int) -> BatchKVCache:
    """Append `rows` empty rows to a cache, and return it."""
    cache.extend(BatchKVCache([0] * rows))
    return cache


def truncate_rows(cache: BatchKVCache, rows: int) -> None:
    """Keep the first `rows` rows of a cache. Unlike `filter`, copy and evaluate nothing."""
    assert cache.keys is not None and cache.values is not None
    cache.keys, cache.values = cache.keys[:rows], cache.values[:rows]
    cache.offset, cache.left_padding = cache.offset[:rows], cache.left_padding[:rows]


# The cache of one row.


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
        return all(not part.empty() and (not _is_sliceable(part) or _end(part) >= self.length) for part in self._parts)

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
        padding = _end(part) - self.length  # on the left
        row = slice(self._index, self._index + 1)
        arrays = (part.keys, part.values) if isinstance(part.keys, mx.array) else (*part.keys, *part.values)
        return [mx.contiguous(array[row, :, padding + start : padding + stop]) for array in arrays]


class Checkpoint(Struct, frozen=True):
    """The cache of a row at one moment. It must be used before the batch computes anything else."""

    tokens: list[int]
    """The tokens that the cache holds."""
    cache: RowCache


def _is_sliceable(part: Any) -> bool:
    return isinstance(part, BatchKVCache) or is_sliceable(part)


def _end(part: Any) -> int:
    """Return the number of positions that a sliceable cache holds, padding included."""
    return part.size() if isinstance(part, BatchKVCache) else part.offset


def _detached(part: Any) -> Any:
    """Return the cache with arrays that share no memory with the batch."""
    keys = part.keys if isinstance(part, RotatingKVCache) and part.keep == 0 else None
    if keys is not None and keys.shape[2] > part.max_size:
        # After a chunk it holds all of the chunk. The batched form takes no more than its window.
        part = type(part).merge([part]).extract(0)
    part.state = tree_map(lambda value: mx.contiguous(value) if isinstance(value, mx.array) else value, part.state)
    return part
