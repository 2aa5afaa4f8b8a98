"""Whether a model's prompts can be padded to one length."""

from typing import Final

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import PromptProcessingBatch
from mlx_lm.models.cache import make_prompt_cache

from .caches import name_special_caches

TRIAL_LENGTHS: Final = (3, 11, 6)
TRIAL_TOKENS: Final = 100
"""Every vocabulary has so many."""
MAX_LOGIT_DEVIATION: Final = 0.2
"""By how many standard deviations of the logits rounding moves one, at most; padding that is not hidden moves more."""


def supports_padding(model: nn.Module) -> bool:
    """Whether prompts of different lengths can be processed together, tried out on three.

    Recurrent caches can be joined and yet not hide padding, and a model's own code may not keep to the caches' masks.
    The trial compares logits and not tokens: on a GPU a batch is rounded otherwise than a row alone, and rounding
    decides between tokens that are about as probable.
    """
    if name_special_caches(make_prompt_cache(model)):
        return False
    prompts = [[(7 * length + index) % TRIAL_TOKENS for index in range(length)] for length in TRIAL_LENGTHS]
    together = _next_logits(model, prompts)
    alone = mx.concatenate([_next_logits(model, [prompt]) for prompt in prompts])
    difference = mx.abs(together - alone).max(axis=-1)
    return bool(mx.all(difference < MAX_LOGIT_DEVIATION * mx.std(alone, axis=-1)).item())


def _next_logits(model: nn.Module, prompts: list[list[int]]) -> mx.array:
    """[B, V]: what follows each prompt, by way of mlx-lm's own padding."""
    caches = [make_prompt_cache(model) for _ in prompts]
    batch = PromptProcessingBatch(model, list(range(len(prompts))), caches)
    batch.prompt([prompt[:-1] for prompt in prompts])
    last = mx.array([prompt[-1] for prompt in prompts])
    return model(last[:, None], cache=batch.prompt_cache)[:, -1, :].astype(mx.float32)
