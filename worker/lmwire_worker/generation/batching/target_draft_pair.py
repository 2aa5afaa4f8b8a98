"""A model together with the smaller one that proposes its tokens."""

from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache


class TargetDraftPair(nn.Module):
    """Reads like one model: its caches are those of both, and its logits are the model's.

    Args:
        model: What answers.
        draft: What proposes.
        vocab_size: Below this a token is the same one in both. From there on one of them has padding, which some
            models have more of than others.
    """

    def __init__(self, model: nn.Module, draft: nn.Module, vocab_size: int) -> None:
        super().__init__()
        self.model = model
        self.draft = draft
        self._vocab_size = vocab_size
        self._own = len(make_prompt_cache(model))

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        own, drafts = self.split(cache)
        logits = self.model(tokens, cache=own)
        self.draft_logits(tokens, drafts)
        return logits

    def draft_logits(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """The draft's logits [B, T, vocab_size]. Padding, which means nothing, is another token to it."""
        return self.draft(mx.minimum(tokens, self._vocab_size - 1), cache=cache)[..., : self._vocab_size]

    def make_cache(self) -> list[Any]:
        return [*make_prompt_cache(self.model), *make_prompt_cache(self.draft)]

    def split(self, cache: list[Any]) -> tuple[list[Any], list[Any]]:
        """The caches of the model, and those of its draft."""
        return cache[: self._own], cache[self._own :]

    @property
    def layers(self) -> Any:
        """The model's."""
        return getattr(self.model, "layers", ())
