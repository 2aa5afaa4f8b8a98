"""Caches, of a row alone and of rows together."""

import copy
from collections.abc import Iterable
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import BatchKVCache, BatchRotatingKVCache, CacheList, KVCache, make_prompt_cache

from ..prefix_cache.cache_schema import flatten_caches

MAX_CHUNK_TOKENS: Final = 2048
"""Tokens of one prompt processed in one step, at most."""


def supports_batching(model: nn.Module) -> bool:
    """Whether several rows can run together: some caches cannot be joined, and would spoil the whole batch."""
    return all(hasattr(cache, "merge") for cache in flatten_caches(make_prompt_cache(model)))


def prefill(model: nn.Module, tokens: list[int], cache: list[Any] | None = None, held: int = 0) -> list[Any]:
    """A cache that holds all of the tokens but the last, which is tried out.

    Args:
        model: The model.
        tokens: The tokens.
        cache: What is known of them, as the caller's own; nothing when None.
        held: How many of them it holds.
    """
    cache = cache or make_prompt_cache(model)
    for start in range(held, len(tokens) - 1, MAX_CHUNK_TOKENS):
        model(mx.array([tokens[start : min(start + MAX_CHUNK_TOKENS, len(tokens) - 1)]]), cache=cache)
        mx.eval([layer.state for layer in cache])
    mx.eval(model(mx.array([tokens[-1:]]), cache=copy.deepcopy(cache)))
    return cache


def name_special_caches(caches: Iterable[Any]) -> str:
    """The kinds of caches that are no plain KV cache, in words; empty when all are."""
    return " and a ".join(sorted({type(cache).__name__ for cache in caches if type(cache) is not KVCache}))


def merge_caches(caches: list[list[Any]]) -> list[Any]:
    """Return the caches of rows as those of one batch, layer by layer. A row alone keeps its single form."""
    if len(caches) == 1:
        return list(caches[0])
    return [type(layers[0]).merge(list(layers)) for layers in zip(*caches, strict=True)]


def to_batched(cache: Any) -> Any:
    if isinstance(cache, CacheList):
        return CacheList(*map(to_batched, cache.caches))
    return cache if hasattr(cache, "extend") else type(cache).merge([cache])


def append_empty_rows(cache: BatchKVCache, rows: int) -> BatchKVCache:
    """The cache with so many empty rows behind its own."""
    cache.extend(BatchKVCache([0] * rows))
    return cache


def truncate_rows(cache: BatchKVCache, rows: int) -> None:
    """Drops what is behind so many rows; unlike `filter` it neither copies nor waits."""
    assert cache.keys is not None and cache.values is not None
    cache.keys, cache.values = cache.keys[:rows], cache.values[:rows]
    cache.offset, cache.left_padding = cache.offset[:rows], cache.left_padding[:rows]


def copy_row(cache: Any, index: int) -> Any:
    """A copy of one row's part."""
    if isinstance(cache, CacheList):
        return CacheList(*(copy_row(part, index) for part in cache.caches))
    return cache.extract(index) if hasattr(cache, "extract") else copy.deepcopy(cache)


def to_single(cache: Any) -> Any:
    if isinstance(cache, CacheList):
        return CacheList(*map(to_single, cache.caches))
    batched = isinstance(cache, BatchKVCache | BatchRotatingKVCache)
    return cache.extract(0) if batched and cache.keys is not None else cache  # empty ones cannot be extracted
