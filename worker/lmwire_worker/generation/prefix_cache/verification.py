"""Whether what was kept leads the model to what it says anyway."""

import copy
from typing import Any, Final

import mlx.core as mx
from mlx import nn

MAX_LOGIT_DEVIATION: Final = 0.5
"""By how many standard deviations of the logits rounding moves one, at most: a trained model's in bfloat16 by a tenth.
Another prompt's cache moves some by several."""


def logits_match(network: nn.Module, token: int, kept: list[Any], computed: list[Any]) -> bool:
    """Whether a token's logits are the same behind two caches of the same tokens, but for rounding.

    The caches stay as they are.
    """
    warm, cold = (_logits(network, token, copy.deepcopy(cache)) for cache in (kept, computed))
    return bool((mx.abs(warm - cold).max() <= MAX_LOGIT_DEVIATION * mx.std(cold)).item())


def _logits(network: nn.Module, token: int, cache: list[Any]) -> mx.array:
    return network(mx.array([[token]]), cache=cache)[0, -1].astype(mx.float32)
