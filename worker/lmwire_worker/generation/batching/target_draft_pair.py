"""A target model with its draft model, as one network."""

from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache


class TargetDraftPair(nn.Module):
    """A network with the caches of both models and the logits of the target model.

    Args:
        model: The target model.
        draft: The draft model, which proposes tokens.
        vocab_size: Number of tokens that both models know. Beyond it, at least one of them has padding.
    """

    def __init__(self, model: nn.Module, draft: nn.Module, vocab_size: int) -> None:
        super().__init__()
        self.model = model
        self.draft = draft
        self._vocab_size = vocab_size
        self._own = len(make_prompt_cache(model))

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Compute tokens [B, T] with both models, and return the target model's logits [B, T, V]."""
        own, drafts = self.split(cache)
        logits = self.model(tokens, cache=own)
        self.draft_logits(tokens, drafts)
        return logits

    def draft_logits(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Return the draft's logits [B, T, vocab_size]. Tokens that only the target model has become another token."""
        return self.draft(mx.minimum(tokens, self._vocab_size - 1), cache=cache)[..., : self._vocab_size]

    def make_cache(self) -> list[Any]:
        """Return empty caches of both models."""
        return [*make_prompt_cache(self.model), *make_prompt_cache(self.draft)]

    def split(self, cache: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the caches of the target model, and those of the draft model."""
        return cache[: self._own], cache[self._own :]

    @property
    def layers(self) -> Any:
        """The layers of the target model."""
        return getattr(self.model, "layers", ())
