"""Compare a cached prefix with the same tokens computed again."""

import copy
from typing import Any, Final

import mlx.core as mx
from mlx import nn

MAX_LOGIT_DEVIATION: Final = 0.5
"""Maximum deviation of a logit, in standard deviations of the logits. Rounding moves a trained model's by 0.1 in
bfloat16. Another prompt's cache moves some by several."""


def logits_match(network: nn.Module, token: int, kept: list[Any], computed: list[Any]) -> bool:
    """Return whether a token's logits after two caches of the same tokens are equal, except for rounding.

    Args:
        network: The model.
        token: The token after those in the caches.
        kept: The cached prefix. It is not changed.
        computed: The same tokens, computed again. It is not changed.
    """
    warm, cold = (_logits(network, token, copy.deepcopy(cache)) for cache in (kept, computed))
    return bool((mx.abs(warm - cold).max() <= MAX_LOGIT_DEVIATION * mx.std(cold)).item())


def _logits(network: nn.Module, token: int, cache: list[Any]) -> mx.array:
    return network(mx.array([[token]]), cache=cache)[0, -1].astype(mx.float32)
