"""The caches of a model: their parts that can be stored, their single and batched forms, and one row by itself.

A plain KV cache, quantized or not, can be sliced at any token. A rotating cache forgets old tokens, and a recurrent
state belongs to its last token only: these are stored whole, as snapshots.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import (
    ArraysCache,
    BatchRotatingKVCache,
    CacheList,
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
    make_prompt_cache,
)
from msgspec import Struct

from lmwire_protocol import RequestError

from ..models.weights import summarize_exception
from .padded_cache import PaddedKVCache, rounded

Slices = list[list[mx.array]]
"""The caches of some tokens, for each layer that can be sliced. The last axis but one is the tokens."""

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
    arrays = [_joined(same, length) for same in zip(*pieces, strict=True)]
    half = len(arrays) // 2
    quantized = isinstance(cache, QuantizedKVCache)
    new.keys, new.values = (arrays[:half], arrays[half:]) if quantized else arrays
    if quantized:
        new.keys, new.values = copy.deepcopy((new.keys, new.values))  # mlx-lm writes into these objects
    new.offset = length
    return new


def _joined(pieces: Sequence[mx.array], length: int) -> mx.array:
    """Return `length` tokens as one array. Where it is a new one, it has room for more: that would be a second copy."""
    if len(pieces) == 1:
        return pieces[0]
    room = mx.zeros((*pieces[0].shape[:-2], rounded(length + 1) - length, pieces[0].shape[-1]), pieces[0].dtype)
    return mx.concatenate([*pieces, room], axis=-2)


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


# The forms of a cache: single, for one row, and batched.


def merge_caches(caches: list[list[Any]]) -> list[Any]:
    """Return the caches of rows as those of one batch, layer by layer. A row alone keeps its single form."""
    if len(caches) == 1:
        return list(caches[0])
    return [_merge(layers) for layers in zip(*caches, strict=True)]


def _merge(caches: Sequence[Any]) -> Any:
    if isinstance(caches[0], CacheList):
        return CacheList(*map(_merge, zip(*(cache.caches for cache in caches), strict=True)))
    kind = PaddedKVCache if type(caches[0]) is KVCache else type(caches[0])
    return kind.merge(list(caches))


def to_batched(cache: Any) -> Any:
    """Return the batched form of a cache."""
    if isinstance(cache, CacheList):
        return CacheList(*map(to_batched, cache.caches))
    if hasattr(cache, "extend"):
        return cache
    if type(cache) is not KVCache:
        return type(cache).merge([cache])
    return PaddedKVCache([0], cache.keys, cache.values, cache.offset)


def to_single(cache: Any) -> Any:
    """Return the single form of a cache with one row."""
    if isinstance(cache, CacheList):
        return CacheList(*map(to_single, cache.caches))
    batched = isinstance(cache, PaddedKVCache | BatchRotatingKVCache)
    return cache.extract(0) if batched and not cache.empty() else cache  # empty ones cannot be extracted


def keep_rows(cache: Any, indices: list[int]) -> None:
    """Keep the rows of a cache with these indices."""
    if isinstance(cache, CacheList):
        for part in cache.caches:
            keep_rows(part, indices)
    else:
        cache.filter(indices)


def copy_row(cache: Any, index: int) -> Any:
    """Return a copy of one row of a cache."""
    if isinstance(cache, CacheList):
        return CacheList(*(copy_row(part, index) for part in cache.caches))
    return cache.extract(index) if hasattr(cache, "extract") else copy.deepcopy(cache)


# The cache of one row.


class RowCache:
    """A `CacheSource`. Copies are made when they are evaluated.

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
        return all(not part.empty() and (not _has_positions(part) or _end(part) >= self.length) for part in self._parts)

    def slices(self, start: int, stop: int) -> Slices:
        """See `CacheSource.slices`."""
        return [self._arrays(part, start, stop) for part in self._parts if _has_positions(part)]

    def snapshot(self) -> list[Any]:
        """See `CacheSource.snapshot`."""
        return [_detached(copy_row(part, self._index)) for part in self._parts if not _has_positions(part)]

    def copy(self, layout: CacheSchema, length: int | None = None) -> list[Any]:
        """Return a copy of the row's caches in their single form.

        Args:
            layout: The kinds of the caches.
            length: Number of first tokens to copy, where no cache needs snapshots; None for all.
        """
        length = self.length if length is None else length
        return layout.build([self.slices(0, length)], self.snapshot(), length)

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


def _has_positions(part: Any) -> bool:
    """Return whether a cache, batched or not, can be sliced at any token."""
    return isinstance(part, PaddedKVCache) or is_sliceable(part)


def _end(part: Any) -> int:
    """Return the number of positions that a sliceable cache holds, padding included."""
    return part.size() if isinstance(part, PaddedKVCache) else part.offset


def _detached(part: Any) -> Any:
    """Return the cache with arrays that share no memory with the batch."""
    keys = part.keys if isinstance(part, RotatingKVCache) and part.keep == 0 else None
    if keys is not None and keys.shape[2] > part.max_size:
        # After a chunk it holds all of the chunk. The batched form takes no more than its window.
        part = type(part).merge([part]).extract(0)
    part.state = tree_map(lambda value: mx.contiguous(value) if isinstance(value, mx.array) else value, part.state)
    return part


# Fewer bits, as a load asks with `kv_bits`.

GROUP_SIZES: Final = (64, 32)
"""Possible numbers of values that share one scale, best first. A head's width must be a multiple."""


def quantize_cache(network: Any, bits: int) -> None:
    """Make a network store its keys and values in `bits` bits. Evaluates nothing, so the weights need not be read yet.

    mlx-lm asks a network for its caches by `make_cache`, which this function sets.

    Args:
        network: The network.
        bits: Bits of a quantized number.

    Raises:
        RequestError: unsupported.
    """
    plain = make_prompt_cache(network)
    if kinds := name_special_caches(plain):
        raise _refusal(f"it keeps a {kinds}, and only a plain KV cache is ever kept in fewer bits")
    _run(network, plain)
    group_size = _group_size(plain)
    network.make_cache = lambda: [QuantizedKVCache(group_size, bits) for _ in plain]
    try:
        _run(network, network.make_cache())
    except Exception as error:  # the architecture reads keys and values itself
        raise _refusal(f"its attention fails on quantised keys and values: {summarize_exception(error)}") from None


def _group_size(cache: list[Any]) -> int:
    """Return the number of values that share a scale in the caches."""
    widths = {part.shape[-1] for layer in cache for part in (layer.keys, layer.values) if part is not None}
    for size in GROUP_SIZES:
        if all(width % size == 0 for width in widths):
            return size
    raise _refusal(f"its heads are {' and '.join(map(str, sorted(widths)))} wide, and no multiple of {GROUP_SIZES[-1]}")


def _run(network: nn.Module, cache: list[Any]) -> None:
    """Run a prompt and a token without evaluation, which checks shapes and types."""
    network(mx.array([[0, 0]]), cache=cache)
    network(mx.array([[0]]), cache=cache)


def _refusal(reason: str) -> RequestError:
    return RequestError("unsupported", f"this model cannot have kv_bits: {reason}", field="kv_bits")
