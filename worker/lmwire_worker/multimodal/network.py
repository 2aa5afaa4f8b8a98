"""A model that mlx-vlm loaded, as mlx-lm's batches call models: tokens and caches in, logits out."""

from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import cache as text_caches
from mlx_vlm.models import cache as own_caches

from .rope_delta import RopeDelta


class UnknownCache(Exception):
    """The model keeps something of a sequence that rows of a batch cannot be joined by."""


class RecurrentCache(own_caches.ArraysCache, text_caches.ArraysCache):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """mlx-vlm's, which its recurrent layers ask for more than mlx-lm's has; and one of mlx-lm's to its batches."""


class SeeingNetwork(nn.Module):
    """The language model of a model that sees, with its encoder beside it.

    Nothing is kept between two calls: mlx-vlm's own models remember the last prompt's positions, and would mix up rows
    that take turns.

    Args:
        model: What mlx-vlm loaded.
    """

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @property
    def layers(self) -> list[nn.Module]:
        """Of the language model."""
        return self.model.language_model.layers

    @property
    def counts_positions(self) -> bool:
        """Whether an image's tokens have other positions than their places in the prompt."""
        return hasattr(self.model.language_model, "get_rope_index")

    def make_cache(self) -> list[Any]:
        """mlx-lm's caches: mlx-vlm's copies of them know nothing of mlx-lm's batches.

        Raises:
            UnknownCache: mlx-lm has no such cache.
        """
        caches = [_text_cache(cache) for cache in own_caches.make_prompt_cache(self.model.language_model)]
        return [*caches, RopeDelta()] if self.counts_positions else caches

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """The logits [B, L, V] of tokens [B, L] that no picture is among."""
        if not self.counts_positions:
            return self._logits(tokens, cache)
        *layers, delta = cache
        start = _offset(layers) + delta.deltas  # [B, 1]
        positions = start + mx.arange(tokens.shape[1])
        return self._logits(tokens, layers, position_ids=mx.broadcast_to(positions, (3, *positions.shape)))

    def embed(self, tokens: mx.array) -> dict[str, mx.array]:
        """What `see` takes for tokens [1, L] as if all were text, by name: each [1, L, …]."""
        made = self.model.get_input_embeddings(tokens, None)
        embedded = {"inputs_embeds": made.inputs_embeds, "per_layer_inputs": made.per_layer_inputs}
        return {name: values for name, values in embedded.items() if values is not None}

    def see(self, tokens: mx.array, cache: list[Any], **inputs: Any) -> mx.array:
        """The logits of tokens [1, L] of a prompt's beginning, given as the model takes them with pictures in them."""
        layers = cache[: len(cache) - self.counts_positions]
        return self._logits(tokens, layers, **inputs)

    def _logits(self, tokens: mx.array, layers: list[Any], **inputs: Any) -> mx.array:
        return self.model.language_model(tokens, cache=layers, **inputs).logits


def _offset(layers: list[Any]) -> mx.array:
    """Tokens that the caches hold: [B, 1], or a number where all rows have as many."""
    offset = next(layer.offset for layer in layers if hasattr(layer, "offset"))
    return offset[:, None] if isinstance(offset, mx.array) and offset.ndim else offset


def _text_cache(cache: Any) -> Any:
    match type(cache).__name__:
        case "KVCache":
            return text_caches.KVCache()
        case "RotatingKVCache":
            return text_caches.RotatingKVCache(cache.max_size, cache.keep)
        case "ArraysCache":
            return RecurrentCache(len(cache.cache))
        case "CacheList":
            return text_caches.CacheList(*map(_text_cache, cache.caches))
        case name:
            raise UnknownCache(f"it keeps a {name}")
