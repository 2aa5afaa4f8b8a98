"""What a model's layers keep of a sequence, taken apart and put together again.

A plain KV cache, quantised or not, can be cut at any token. A cache that rotates forgets what it passed, and a
recurrent state is that of its last token alone: those are kept whole, as snapshots.
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
    """A sequence's caches, where they are in use."""

    def slices(self, start: int, stop: int) -> Slices:
        """Copies of what the layers that can be cut keep of tokens; they share nothing with the source."""
        ...

    def snapshot(self) -> list[Any]:
        """Copies of the caches of the layers that cannot be cut."""
        ...


class CacheSchema:
    """The kinds of a model's caches, in their order.

    Args:
        fresh: The model's caches before its first token.
    """

    def __init__(self, fresh: Sequence[Any]) -> None:
        self._fresh = list(fresh)
        every = list(flatten_caches(fresh))
        self.is_supported = all(is_sliceable(part) or isinstance(part, _SNAPSHOT_ONLY) for part in every)
        """Whether it is known how to copy each of them."""
        self.needs_snapshots = not all(map(is_sliceable, every))
        """Whether some cannot be cut, so that a sequence can only go on from where a snapshot was taken."""

    def build(self, pieces: Sequence[Slices], snapshot: Sequence[Any], length: int) -> list[Any]:
        """Caches that hold `length` tokens.

        Args:
            pieces: Of these tokens, in order.
            snapshot: As it is behind the last of them.
            length: Their number.
        """
        cut = iter(zip(*pieces, strict=True))
        whole = iter(copy.deepcopy(list(snapshot)))  # arrays are shared until one of them changes
        filled = (
            _filled(part, next(cut), length) if is_sliceable(part) else next(whole)
            for part in flatten_caches(self._fresh)
        )
        return [_grouped(cache, filled) for cache in self._fresh]

    def restore(self, states: Sequence[Any]) -> list[Any]:
        """The snapshot that had these states, one for each layer that cannot be cut."""
        fresh = [part for part in flatten_caches(self._fresh) if not is_sliceable(part)]
        snapshot = [copy.copy(part) for part in fresh]
        for part, state in zip(snapshot, states, strict=True):
            part.state = state
        return snapshot


def flatten_caches(caches: Sequence[Any]) -> Iterator[Any]:
    """The caches with the lists among them taken apart, and without those that are worked out anew for each prompt."""
    for cache in caches:
        if isinstance(cache, CacheList):
            yield from flatten_caches(cache.caches)
        elif not _is_derived(cache):
            yield cache


def _is_derived(cache: Any) -> bool:
    return getattr(cache, "derived", False)


def is_sliceable(cache: Any) -> bool:
    """Whether what it keeps of some tokens can be taken out."""
    return type(cache) in _SLICEABLE


def arrays_of(caches: Sequence[Any]) -> list[mx.array]:
    """The arrays of caches that are no lists."""
    return [value for cache in caches for _, value in flatten_state(cache.state) if isinstance(value, mx.array)]


def flatten_state(state: Any) -> list[tuple[str, Any]]:
    """A cache's state, flat."""
    return tree_flatten(state)  # pyright: ignore[reportReturnType]


def _grouped(cache: Any, filled: Iterator[Any]) -> Any:
    """As many of the filled caches as one that may be a list of them holds."""
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
        new.keys, new.values = copy.deepcopy((new.keys, new.values))  # it writes into the very objects
    new.offset = length
    return new
