"""Convert caches between their single form and their batched form."""

import copy
from collections.abc import Iterable
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import BatchKVCache, BatchRotatingKVCache, CacheList, KVCache, make_prompt_cache

from ..prefix_cache.cache_schema import flatten_caches

MAX_CHUNK_TOKENS: Final = 2048
"""Maximum tokens of one prompt in one step."""


def supports_batching(model: nn.Module) -> bool:
    """Return whether all caches of a model have a batched form."""
    return all(hasattr(cache, "merge") for cache in flatten_caches(make_prompt_cache(model)))


def prefill(model: nn.Module, tokens: list[int], cache: list[Any] | None = None, cached_tokens: int = 0) -> list[Any]:
    """Return a cache with all tokens but the last. The last one is computed on a copy, to detect errors.

    Args:
        model: The network.
        tokens: The tokens.
        cache: The cache of the first `cached_tokens` tokens, which this function takes over; None for an empty one.
        cached_tokens: Number of tokens in the cache.
    """
    cache = cache or make_prompt_cache(model)
    for start in range(cached_tokens, len(tokens) - 1, MAX_CHUNK_TOKENS):
        model(mx.array([tokens[start : min(start + MAX_CHUNK_TOKENS, len(tokens) - 1)]]), cache=cache)
        mx.eval([layer.state for layer in cache])
    mx.eval(model(mx.array([tokens[-1:]]), cache=copy.deepcopy(cache)))
    return cache


def name_special_caches(caches: Iterable[Any]) -> str:
    """Return the kinds of caches that are not plain KV caches, as text; empty if all are plain."""
    return " and a ".join(sorted({type(cache).__name__ for cache in caches if type(cache) is not KVCache}))


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


def append_empty_rows(cache: BatchKVCache, rows: int) -> BatchKVCache:
    """Append `rows` empty rows to a cache, and return it."""
    cache.extend(BatchKVCache([0] * rows))
    return cache


def truncate_rows(cache: BatchKVCache, rows: int) -> None:
    """Keep the first `rows` rows of a cache. Unlike `filter`, copy and evaluate nothing."""
    assert cache.keys is not None and cache.values is not None
    cache.keys, cache.values = cache.keys[:rows], cache.values[:rows]
    cache.offset, cache.left_padding = cache.offset[:rows], cache.left_padding[:rows]


def copy_row(cache: Any, index: int) -> Any:
    """Return a copy of one row of a cache."""
    if isinstance(cache, CacheList):
        return CacheList(*(copy_row(part, index) for part in cache.caches))
    return cache.extract(index) if hasattr(cache, "extract") else copy.deepcopy(cache)


def to_single(cache: Any) -> Any:
    """Return the single form of a cache with one row."""
    if isinstance(cache, CacheList):
        return CacheList(*map(to_single, cache.caches))
    batched = isinstance(cache, BatchKVCache | BatchRotatingKVCache)
    return cache.extract(0) if batched and cache.keys is not None else cache  # empty ones cannot be extracted
