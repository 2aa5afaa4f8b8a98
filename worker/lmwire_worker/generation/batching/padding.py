"""Find out whether a model computes padded prompts correctly."""

from typing import Final

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import PromptProcessingBatch
from mlx_lm.models.cache import make_prompt_cache

from .caches import name_special_caches

TRIAL_LENGTHS: Final = (3, 11, 6)
TRIAL_TOKENS: Final = 100
"""Every vocabulary has at least this many tokens."""
MAX_LOGIT_DEVIATION: Final = 0.2
"""Maximum deviation of a logit by rounding, in standard deviations of the logits. Visible padding causes more."""


def supports_padding(model: nn.Module) -> bool:
    """Return whether prompts of different lengths can be prefilled together, by a trial with three prompts.

    The batched form of a recurrent cache does not hide padding, and a model's own code may ignore masks.
    The trial compares logits, not tokens: on a GPU, a batch is rounded differently from a single row, and rounding
    decides between tokens of nearly equal probability.
    """
    if name_special_caches(make_prompt_cache(model)):
        return False
    prompts = [[(7 * length + index) % TRIAL_TOKENS for index in range(length)] for length in TRIAL_LENGTHS]
    together = _next_logits(model, prompts)
    alone = mx.concatenate([_next_logits(model, [prompt]) for prompt in prompts])
    difference = mx.abs(together - alone).max(axis=-1)
    return bool(mx.all(difference < MAX_LOGIT_DEVIATION * mx.std(alone, axis=-1)).item())


def _next_logits(model: nn.Module, prompts: list[list[int]]) -> mx.array:
    """Return the logits [B, V] after each prompt, with mlx-lm's own padding."""
    caches = [make_prompt_cache(model) for _ in prompts]
    batch = PromptProcessingBatch(model, list(range(len(prompts))), caches)
    batch.prompt([prompt[:-1] for prompt in prompts])
    last = mx.array([prompt[-1] for prompt in prompts])
    return model(last[:, None], cache=batch.prompt_cache)[:, -1, :].astype(mx.float32)
