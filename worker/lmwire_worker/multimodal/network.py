"""Adapt a model of mlx-vlm to the batch: tokens and mlx-lm's caches in, logits out."""

from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import cache as text_caches
from mlx_vlm.models import cache as own_caches

from .rope_delta import RopeDelta


class UnsupportedCache(Exception):
    """The model has a cache that the rows of a batch cannot share."""


class RecurrentCache(own_caches.ArraysCache, text_caches.ArraysCache):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """Both mlx-vlm's cache, which its recurrent layers need, and mlx-lm's, which the batch needs."""


class MultimodalNetwork(nn.Module):
    """The language model of a multimodal model, with its encoder beside it.

    It has no state between calls. mlx-vlm's own models remember the last prompt's positions, and would mix up rows
    that take turns.

    Args:
        model: mlx-vlm's model.
    """

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @property
    def layers(self) -> list[nn.Module]:
        """Layers of the language model."""
        return self.model.language_model.layers

    @property
    def has_rope_delta(self) -> bool:
        """True if the positions of an image's tokens differ from their indices in the prompt."""
        return hasattr(self.model.language_model, "get_rope_index")

    def make_cache(self) -> list[Any]:
        """Return caches of mlx-lm: mlx-vlm's copies of them have no batched form.

        Raises:
            UnknownCache: mlx-lm has no such cache.
        """
        caches = [_text_cache(cache) for cache in own_caches.make_prompt_cache(self.model.language_model)]
        return [*caches, RopeDelta()] if self.has_rope_delta else caches

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Return the logits [B, L, V] of tokens [B, L] without media inputs.

        Args:
            tokens: The tokens.
            cache: The caches of the rows, from `make_cache`.
        """
        if not self.has_rope_delta:
            return self._logits(tokens, cache)
        *layers, delta = cache
        start = _offset(layers) + delta.deltas  # [B, 1]
        positions = start + mx.arange(tokens.shape[1])
        return self._logits(tokens, layers, position_ids=mx.broadcast_to(positions, (3, *positions.shape)))

    def embed_tokens(self, tokens: mx.array) -> dict[str, mx.array]:
        """Return the inputs of `forward_embeddings` by name, each [1, L, …], for tokens [1, L] of text alone."""
        made = self.model.get_input_embeddings(tokens, None)
        embedded = {"inputs_embeds": made.inputs_embeds, "per_layer_inputs": made.per_layer_inputs}
        return {name: values for name, values in embedded.items() if values is not None}

    def forward_embeddings(self, tokens: mx.array, cache: list[Any], **inputs: Any) -> mx.array:
        """Return the logits of tokens [1, L] at a prompt's beginning, with media inputs among them.

        Args:
            tokens: The tokens.
            cache: The caches of the row, from `make_cache`.
            inputs: The model's inputs by name: `inputs_embeds` and others.
        """
        layers = cache[: len(cache) - self.has_rope_delta]
        if "deepstack_visual_embeds" in inputs and self.model.config.model_type == "qwen3_omni_moe":
            from mlx_vlm.models.qwen3_omni_moe.language import expand_deepstack_visual_embeds

            # It takes features of all tokens, zeros for text, and not of images alone.
            marked, features = inputs["visual_pos_masks"], inputs["deepstack_visual_embeds"]
            inputs["deepstack_visual_embeds"] = expand_deepstack_visual_embeds(marked, features)
        return self._logits(tokens, layers, **inputs)

    def _logits(self, tokens: mx.array, layers: list[Any], **inputs: Any) -> mx.array:
        return self.model.language_model(tokens, cache=layers, **inputs).logits


def _offset(layers: list[Any]) -> mx.array:
    """Return the number of cached tokens: [B, 1], or one number for all rows."""
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
            raise UnsupportedCache(f"it keeps a {name}")
