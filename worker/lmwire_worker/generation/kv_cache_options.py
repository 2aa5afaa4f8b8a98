"""Quantizes the KV cache, as a load asks with `kv_bits`."""

from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import QuantizedKVCache, make_prompt_cache

from lmwire_protocol import RequestError

from ..models.weights import summarize_exception
from .batching import name_special_caches

GROUP_SIZES: Final = (64, 32)
"""Numbers that share one scale, the best choice first; a head's width must be a multiple."""


def quantize_cache(network: Any, bits: int) -> None:
    """Makes a network keep its keys and values in `bits` bits. Evaluates nothing, so the weights may be yet to be read.

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
    except Exception as error:  # an architecture that computes on keys and values by itself
        raise _refusal(f"its attention fails on quantised keys and values: {summarize_exception(error)}") from None


def _group_size(cache: list[Any]) -> int:
    """How many numbers share a scale in what a cache holds."""
    widths = {part.shape[-1] for layer in cache for part in (layer.keys, layer.values) if part is not None}
    for size in GROUP_SIZES:
        if all(width % size == 0 for width in widths):
            return size
    raise _refusal(f"its heads are {' and '.join(map(str, sorted(widths)))} wide, and no multiple of {GROUP_SIZES[-1]}")


def _run(network: nn.Module, cache: list[Any]) -> None:
    """A prompt and a token, of which the shapes and types alone are worked out."""
    network(mx.array([[0, 0]]), cache=cache)
    network(mx.array([[0]]), cache=cache)


def _refusal(reason: str) -> RequestError:
    return RequestError("unsupported", f"this model cannot have kv_bits: {reason}", field="kv_bits")
