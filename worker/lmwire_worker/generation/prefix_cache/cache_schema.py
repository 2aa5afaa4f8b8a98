"""Split a model's caches into parts that can be stored, and build caches from these parts.

A plain KV cache, quantized or not, can be sliced at any token. A rotating cache forgets old tokens, and a recurrent
state belongs to its last token only: these are stored whole, as snapshots.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import (
    ArraysCache,
    CacheList,
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
)

from .radix_tree import Slices

_SLICEABLE: Final = (KVCache, QuantizedKVCache)
_SNAPSHOT_ONLY: Final = (RotatingKVCache, ArraysCache, ChunkedKVCache)


class CacheSource(Protocol):
    """The caches of a sequence."""

    def slices(self, start: int, stop: int) -> Slices:
        """Return copies of the caches of the tokens from `start` to `stop`, for the layers that can be sliced."""
        ...

    def snapshot(self) -> list[Any]:
        """Return copies of the caches of the layers that cannot be sliced."""
        ...


class CacheSchema:
    """The kinds of a model's caches, layer by layer.

    Args:
        fresh: Empty caches of the model.
    """

    def __init__(self, fresh: Sequence[Any]) -> None:
        self._fresh = list(fresh)
        every = list(flatten_caches(fresh))
        self.is_supported = all(is_sliceable(part) or isinstance(part, _SNAPSHOT_ONLY) for part in every)
        """True if all caches are of kinds that can be stored."""
        self.needs_snapshots = not all(map(is_sliceable, every))
        """True if some cannot be sliced, so that a sequence can only continue from a snapshot."""

    def build(self, pieces: Sequence[Slices], snapshot: Sequence[Any], length: int) -> list[Any]:
        """Return caches that hold `length` tokens.

        Args:
            pieces: The slices of these tokens, in order.
            snapshot: The snapshot after the last of them.
            length: The number of tokens.
        """
        cut = iter(zip(*pieces, strict=True))
        whole = iter(copy.deepcopy(list(snapshot)))  # arrays are shared until one of them changes
        filled = (
            _filled(part, next(cut), length) if is_sliceable(part) else next(whole)
            for part in flatten_caches(self._fresh)
        )
        return [_grouped(cache, filled) for cache in self._fresh]

    def restore(self, states: Sequence[Any]) -> list[Any]:
        """Return a snapshot with these states, one for each layer that cannot be sliced."""
        fresh = [part for part in flatten_caches(self._fresh) if not is_sliceable(part)]
        snapshot = [copy.copy(part) for part in fresh]
        for part, state in zip(snapshot, states, strict=True):
            part.state = state
        return snapshot


def flatten_caches(caches: Sequence[Any]) -> Iterator[Any]:
    """Yield the caches inside of cache lists too, without those that are derived anew for each prompt."""
    for cache in caches:
        if isinstance(cache, CacheList):
            yield from flatten_caches(cache.caches)
        elif not _is_derived(cache):
            yield cache


def _is_derived(cache: Any) -> bool:
    return getattr(cache, "derived", False)


def is_sliceable(cache: Any) -> bool:
    """Return whether a cache can be sliced at any token."""
    return type(cache) in _SLICEABLE


def arrays_of(caches: Sequence[Any]) -> list[mx.array]:
    """Return the arrays of flat caches."""
    return [value for cache in caches for _, value in flatten_state(cache.state) if isinstance(value, mx.array)]


def flatten_state(state: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a cache's state, with their paths."""
    return tree_flatten(state)  # pyright: ignore[reportReturnType]


def _grouped(cache: Any, filled: Iterator[Any]) -> Any:
    """Return the next filled cache, or a list of them where the model has a cache list."""
    if isinstance(cache, CacheList):
        return CacheList(*(_grouped(part, filled) for part in cache.caches))
    if _is_derived(cache):
        return copy.copy(cache)
    return next(filled)


def _filled(cache: Any, pieces: Sequence[list[mx.array]], length: int) -> Any:
    new = copy.copy(cache)
    joined = map(list, zip(*pieces, strict=True))
    arrays = [mx.concatenate(same, axis=-2) if len(same) > 1 else same[0] for same in joined]
    half = len(arrays) // 2
    quantized = isinstance(cache, QuantizedKVCache)
    new.keys, new.values = (arrays[:half], arrays[half:]) if quantized else arrays
    if quantized:
        new.keys, new.values = copy.deepcopy((new.keys, new.values))  # mlx-lm writes into these objects
    new.offset = length
    return new
