"""A model together with the smaller one that proposes its tokens."""

from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models.cache import make_prompt_cache


class Pair(nn.Module):
    """Reads like one model: its caches are those of both, and its logits are the model's.

    Args:
        model: What answers.
        draft: What proposes. Of the same tokens.
    """

    def __init__(self, model: nn.Module, draft: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.draft = draft
        self._own = len(make_prompt_cache(model))

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        own, drafts = self.split(cache)
        logits = self.model(tokens, cache=own)
        self.draft(tokens, cache=drafts)
        return logits

    def make_cache(self) -> list[Any]:
        return [*make_prompt_cache(self.model), *make_prompt_cache(self.draft)]

    def split(self, cache: list[Any]) -> tuple[list[Any], list[Any]]:
        """The caches of the model, and those of its draft."""
        return cache[: self._own], cache[self._own :]

    @property
    def layers(self) -> Any:
        """The model's."""
        return getattr(self.model, "layers", ())
