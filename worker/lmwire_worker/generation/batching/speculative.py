"""Speculative decoding: a draft model proposes tokens, and the target model verifies all of them in one pass.

The idea: https://arxiv.org/abs/2211.17192
"""

from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache

if TYPE_CHECKING:
    from .uneven import Columns


class TargetDraftPair(nn.Module):
    """A network with the caches of both models and the logits of the target model.

    Both caches hold the same tokens, between two steps.

    Args:
        model: The target model.
        draft: The draft model, which proposes tokens. All caches of both are plain KV caches.
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
        logits = self.verify(tokens, cache)
        drafts = self._drafts(cache)
        self._draft_logits(tokens, drafts)
        arrays = [array for layer in drafts for array in (layer.keys, layer.values)]
        return mx.depends([logits], arrays)[0]  # otherwise nothing would compute them, and their graph would grow

    def verify(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Compute tokens [B, T] that the draft model has read, and return the target model's logits [B, T, V]."""
        return self.model(tokens, cache=cache[: self._own])

    def propose(self, newest: mx.array, cache: list[Any], count: int, columns: "Columns | None") -> list[list[int]]:
        """Return the draft model's most probable next tokens of each row, having read all of them.

        Args:
            newest: The newest token of each row [B].
            cache: The caches of both models.
            count: Number of tokens to propose.
            columns: Where the tokens are in uneven caches; None for the cache of a row alone.
        """
        proposals: list[mx.array] = []
        token = newest[:, None]
        for ahead in range(count + 1):
            if columns is not None:
                columns.look_ahead(ahead)
            logits = self._draft_logits(token, self._drafts(cache))
            token = mx.argmax(logits[:, -1:], axis=-1)
            proposals.append(token)
        if columns is not None:
            columns.look_ahead(0)
        proposed: Any = mx.concatenate(proposals[:count], axis=1).tolist()
        return proposed

    def make_cache(self) -> list[Any]:
        """Return empty caches of both models."""
        return [*make_prompt_cache(self.model), *make_prompt_cache(self.draft)]

    @property
    def layers(self) -> Any:
        """The layers of the target model."""
        return getattr(self.model, "layers", ())

    def _drafts(self, cache: list[Any]) -> list[Any]:
        return cache[self._own :]

    def _draft_logits(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Return the draft's logits [B, T, vocab_size]. Tokens that only the target model has become another token."""
        return self.draft(mx.minimum(tokens, self._vocab_size - 1), cache=cache)[..., : self._vocab_size]
