"""Quantize the KV cache, as a load asks with `kv_bits`."""

from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import QuantizedKVCache, make_prompt_cache

from lmwire_protocol import RequestError

from ..models.weights import summarize_exception
from .batching import name_special_caches

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
