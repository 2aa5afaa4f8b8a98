"""Attention on CUDA: answers by a kernel, and prompts without a plan for each length of the context.

MLX lets cuDNN attend for a prompt. That plans for each new shape, and the length of the context is a part of it. A plan
takes 50 to 80 ms on an H200, and a chunk of a prompt 10 to 20 ms. Hardly two chunks have the same length before them.
So as long as the scores fit into a little memory, three plain products and a softmax replace the plan. MLX does the
same for the shapes that cuDNN refuses.
"""

from functools import lru_cache
from typing import Any, Final

import mlx.core as mx

from .cuda import uses_cuda
from .decode_attention import attend_one_query, suits_kernel
from .device_memory import device_bytes

MAX_SCORES: Final = 2**27
"""Maximum scores that are in memory at once. With 28 layers, more take as long to write and read as a plan."""
DEVICE_SHARE: Final = 64
"""The scores and what the softmax makes of them take no more than this part of the device's memory."""
_CUDNN_TYPES: Final = (mx.float16, mx.bfloat16)
_CUDNN_WIDTH: Final = 128
"""Maximum width of a head for cuDNN."""

_fused: Any = mx.fast.scaled_dot_product_attention


def replace_attention() -> None:
    """Let `attend` do the attention of all models on CUDA. Does nothing on other devices."""
    if uses_cuda():
        mx.fast.scaled_dot_product_attention = attend  # pyrefly: ignore[bad-assignment] : it takes more options


def attend(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    *,
    scale: float,
    mask: mx.array | str | None = None,
    sinks: mx.array | None = None,
    **options: Any,
) -> mx.array:
    """Do what `mlx.core.fast.scaled_dot_product_attention` does, by other operations where CUDA is faster so.

    Args:
        queries: The queries, of shape (rows, heads, tokens, width).
        keys: The keys, of shape (rows, heads of keys, context, width).
        values: The values, of the shape of the keys, perhaps with another width.
        scale: Factor of the scores.
        mask: True or added to the score where a query attends; "causal"; None for everywhere.
        sinks: A further score of each head, which takes a part of the attention; None without.
        options: Other arguments of MLX's function, which takes the call then.
    """
    is_plain = sinks is None and not options
    if is_plain and not isinstance(mask, str) and suits_kernel(queries, keys, values, mask):
        return attend_one_query(queries, keys, values, scale, mask)
    rows, heads, tokens, width = queries.shape
    if tokens == 1 or options or not _needs_no_plan(queries, keys, values):
        return _fused(queries, keys, values, scale=scale, mask=mask, sinks=sinks, **options)
    groups, context = keys.shape[1:3]
    # The heads that share keys are one product.
    shared = (scale * queries).reshape(rows, groups, -1, width)
    scores = (shared @ keys.swapaxes(-1, -2)).reshape(rows, heads, tokens, context)
    if isinstance(mask, str):
        mask = _causal_mask(tokens, context)
    if mask is not None:
        scores = mx.where(mask, scores, mx.finfo(scores.dtype).min) if mask.dtype == mx.bool_ else scores + mask
    if sinks is not None:
        column = mx.broadcast_to(sinks.astype(scores.dtype)[:, None, None], (rows, heads, tokens, 1))
        scores = mx.concatenate([column, scores], axis=-1)
    weights = mx.softmax(scores, axis=-1, precise=True)[..., -context:]
    return (weights.reshape(rows, groups, -1, context) @ values).reshape(rows, heads, tokens, -1)


def _needs_no_plan(queries: mx.array, keys: mx.array, values: mx.array) -> bool:
    """Return whether cuDNN would plan for these, and their scores are few enough to do without a plan."""
    rows, heads, tokens, width = queries.shape
    is_supported = queries.dtype in _CUDNN_TYPES and max(width, values.shape[-1]) <= _CUDNN_WIDTH
    return is_supported and rows * heads * tokens * keys.shape[2] <= _max_scores()


@lru_cache(1)
def _max_scores() -> int:
    return min(MAX_SCORES, device_bytes() // DEVICE_SHARE // (2 * mx.float16.size))


@lru_cache(1)
def _causal_mask(tokens: int, context: int) -> mx.array:
    """Return which of the context each of its last tokens attends to. All layers use it in turn."""
    return mx.arange(context - tokens, context)[:, None] >= mx.arange(context)
