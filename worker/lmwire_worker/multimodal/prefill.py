"""Compute a prompt up to its last image or sound, chunk by chunk, so that other requests need not wait for long."""

from dataclasses import fields
from typing import Any, Final

import mlx.core as mx

from .media_input import Features, MediaInput
from .network import MultimodalNetwork
from .placeholders import MediaLayout, PlaceholderRange
from .rope_delta import RopeDelta

SUPPORTED_INPUTS: Final = frozenset({"inputs_embeds", "deepstack_visual_embeds"})
"""Outputs of a model's encoder that this module uses."""
IGNORED_INPUTS: Final = frozenset(
    {"position_ids", "rope_deltas", "visual_pos_masks", "attention_mask_4d", "per_layer_inputs"}
)
"""Outputs that this module computes anew, because they describe a whole prompt or the tokens alone, or that mlx-vlm
ignores as well."""


class UnsupportedInputs(Exception):
    """The encoder has an output that this module cannot cut into chunks."""


class MultimodalPrefill:
    """The prefill of a prompt's beginning. Chunks may end anywhere, even inside a media input.

    Args:
        network: The model.
        layout: The prompt's media inputs.
        tokens: The beginning, with all media inputs.
        cache: The row's caches, which this extends.
        cached_tokens: Number of tokens that the caches hold.
    """

    def __init__(
        self, network: MultimodalNetwork, layout: MediaLayout, tokens: list[int], cache: list[Any], cached_tokens: int
    ) -> None:
        self.cache = cache
        self.done = cached_tokens
        """Number of tokens that the caches hold."""
        self.end = len(tokens)
        self._network = network
        self._tokens = mx.array([tokens], mx.int32)
        self._ranges = [place for place in layout.ranges if place.stop > cached_tokens]
        self._positions: mx.array | None = None
        if network.has_rope_delta:
            self._positions, cache[-1] = rope_positions(network, layout, self._tokens)

    def advance(self, size: int) -> int:
        """Encode one media input, or compute a chunk of at most `size` tokens. Return the number of tokens computed."""
        if raw := next((place.media_input for place in self._ranges if place.media_input.features is None), None):
            encode(self._network, raw)
            return 0
        start, stop = self.done, min(self.done + size, self.end)
        self._network.forward_embeddings(self._tokens[:, start:stop], self.cache, **self._inputs(start, stop))
        mx.eval([layer.state for layer in self.cache])
        self.done = stop
        return stop - start

    def _inputs(self, start: int, stop: int) -> dict[str, Any]:
        """Return the model's inputs for a chunk, by name: media features in place of placeholder tokens."""
        tokens = self._tokens[:, start:stop]
        inputs: dict[str, Any] = self._network.embed_tokens(tokens)
        text: mx.array = inputs["inputs_embeds"]
        parts: list[mx.array] = []
        deepstack: list[list[mx.array]] = []
        marked = mx.zeros(tokens.shape, mx.bool_)
        at = start
        for place in self._ranges:
            begin, end = max(place.start, start), min(place.stop, stop)
            if begin < end:
                features = self._features(place)
                seen = features.embeds[:, begin - place.start : end - place.start]
                parts += [text[:, at - start : begin - start], seen]
                at = end
                if features.deepstack:
                    deepstack.append(self._deepstack(place, begin, end))
                    marked = tokens == place.media_input.placeholder_token
        inputs["inputs_embeds"] = mx.concatenate([*parts, text[:, at - start :]], axis=1)
        if self._positions is not None:
            inputs["position_ids"] = self._positions[..., start:stop]
        if deepstack:
            inputs["visual_pos_masks"] = marked
            inputs["deepstack_visual_embeds"] = [mx.concatenate(list(layer)) for layer in zip(*deepstack, strict=True)]
        return inputs

    def _features(self, place: PlaceholderRange) -> Features:
        assert place.media_input.features is not None
        return place.media_input.features

    def _deepstack(self, place: PlaceholderRange, start: int, stop: int) -> list[mx.array]:
        """Return the deepstack features of the placeholder tokens from `start` to `stop`. Other tokens have none."""
        image = [token == place.media_input.placeholder_token for token in place.media_input.tokens]
        before, till = sum(image[: start - place.start]), sum(image[: stop - place.start])
        return [layer[before:till] for layer in self._features(place).deepstack]


def encode(network: MultimodalNetwork, media_input: MediaInput) -> None:
    """Run the encoder on a media input.

    Args:
        network: The model.
        media_input: Receives its features.

    Raises:
        UnsupportedInputs: The encoder has an output that this module cannot use.
    """
    tokens = mx.array([media_input.tokens])
    inputs = {name: mx.array(value) for name, value in (media_input.inputs or {}).items()}
    pixels = inputs.pop("pixel_values", None)
    made = network.model.get_input_embeddings(tokens, pixels, mask=mx.ones_like(tokens), **inputs)
    values = {field.name: getattr(made, field.name) for field in fields(made)}
    if others := sorted(
        name for name, value in values.items() if value is not None and name not in SUPPORTED_INPUTS | IGNORED_INPUTS
    ):
        raise UnsupportedInputs(f"its media inputs come with {' and '.join(others)}")
    if (places := values["inputs_embeds"].shape[1]) != len(media_input.tokens):
        raise UnsupportedInputs(f"it makes {places} places of the {len(media_input.tokens)} tokens that stand for it")
    features = Features(values["inputs_embeds"], _deepstack(values, media_input))
    mx.eval(features.embeds, features.deepstack)
    media_input.set_features(features)


def _deepstack(values: dict[str, Any], media_input: MediaInput) -> list[mx.array]:
    """Return an encoder's deepstack features, [image tokens, width] for each layer."""
    made = values.get("deepstack_visual_embeds")
    if not isinstance(made, mx.array):
        return list(made or ())
    if values.get("visual_pos_masks") is None:  # a sound has none
        return []
    places = [at for at, token in enumerate(media_input.tokens) if token == media_input.placeholder_token]
    return [made[0, mx.array(places), layer] for layer in range(made.shape[2])]


def rope_positions(network: MultimodalNetwork, layout: MediaLayout, tokens: mx.array) -> tuple[mx.array, RopeDelta]:
    """Return the positions [3, 1, L] of a prompt's beginning, and the offset of the tokens after it.

    Args:
        network: The model.
        layout: The prompt's media inputs.
        tokens: The beginning with all media inputs, [1, L].
    """
    grids = [mx.array(place.media_input.grid) for place in layout.ranges if place.media_input.grid is not None]
    grid = mx.concatenate(grids) if grids else None
    places, deltas = network.model.language_model.get_rope_index(tokens, image_grid_thw=grid)
    return places, RopeDelta(deltas.reshape(1, 1).astype(mx.int32))
