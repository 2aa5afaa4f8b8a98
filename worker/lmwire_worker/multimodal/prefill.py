"""A prompt up to its last image or sound, into a cache: piece by piece, so that others need not wait for long."""

from dataclasses import fields
from typing import Any, Final

import mlx.core as mx

from .media_input import Features, Picture
from .network import SeeingNetwork
from .placeholders import ImageLayout, Place
from .rope_delta import RopeDelta

KNOWN: Final = frozenset({"inputs_embeds", "deepstack_visual_embeds"})
"""What a model may take in the place of tokens, and this module gives it,"""
UNUSED: Final = frozenset({"position_ids", "rope_deltas", "visual_pos_masks", "attention_mask_4d", "per_layer_inputs"})
"""and what it computes for a whole prompt, or of the tokens alone, so that it is made anew here, or passed over as
mlx-vlm itself does."""


class UnknownInputs(Exception):
    """The model takes something for a picture that it is not known how to give in pieces."""


class ImagePrefill:
    """Processes the beginning of a prompt. Its tokens may be cut anywhere.

    Args:
        network: The model.
        layout: The prompt's pictures.
        tokens: The beginning, with all of its pictures.
        cache: The model's caches, which hold what is known already.
        held: Tokens of it.
    """

    def __init__(
        self, network: SeeingNetwork, layout: ImageLayout, tokens: list[int], cache: list[Any], held: int
    ) -> None:
        self.cache = cache
        self.done = held
        """Tokens that the cache holds."""
        self.end = len(tokens)
        self._network = network
        self._tokens = mx.array([tokens], mx.int32)
        self._places = [place for place in layout.places if place.stop > held]
        self._positions: mx.array | None = None
        if network.counts_positions:
            self._positions, cache[-1] = positions(network, layout, self._tokens)

    def advance(self, size: int) -> int:
        """One piece: encodes a picture, or processes at most `size` tokens. Returns how many it processed."""
        if picture := next((place.picture for place in self._places if place.picture.features is None), None):
            encode(self._network, picture)
            return 0
        start, stop = self.done, min(self.done + size, self.end)
        self._network.see(self._tokens[:, start:stop], self.cache, **self._inputs(start, stop))
        mx.eval([layer.state for layer in self.cache])
        self.done = stop
        return stop - start

    def _inputs(self, start: int, stop: int) -> dict[str, Any]:
        """What the model takes in the place of tokens."""
        tokens = self._tokens[:, start:stop]
        inputs: dict[str, Any] = self._network.embed(tokens)
        text: mx.array = inputs["inputs_embeds"]
        parts: list[mx.array] = []
        deepstack: list[list[mx.array]] = []
        marked = mx.zeros(tokens.shape, mx.bool_)
        at = start
        for place in self._places:
            begin, end = max(place.start, start), min(place.stop, stop)
            if begin < end:
                features = self._features(place)
                seen = features.embeds[:, begin - place.start : end - place.start]
                parts += [text[:, at - start : begin - start], seen]
                at = end
                if features.deepstack:
                    deepstack.append(self._deepstack(place, begin, end))
                    marked = tokens == place.picture.mark
        inputs["inputs_embeds"] = mx.concatenate([*parts, text[:, at - start :]], axis=1)
        if self._positions is not None:
            inputs["position_ids"] = self._positions[..., start:stop]
        if deepstack:
            inputs["visual_pos_masks"] = marked
            inputs["deepstack_visual_embeds"] = [mx.concatenate(list(layer)) for layer in zip(*deepstack, strict=True)]
        return inputs

    def _features(self, place: Place) -> Features:
        assert place.picture.features is not None
        return place.picture.features

    def _deepstack(self, place: Place, start: int, stop: int) -> list[mx.array]:
        """Of the image tokens from `start` to `stop`: others among a picture's tokens have none."""
        image = [token == place.picture.mark for token in place.picture.tokens]
        before, till = sum(image[: start - place.start]), sum(image[: stop - place.start])
        return [layer[before:till] for layer in self._features(place).deepstack]


def encode(network: SeeingNetwork, picture: Picture) -> None:
    """Runs the encoder on a picture.

    Raises:
        UnknownInputs: the model makes something of it that it is not known how to use.
    """
    tokens = mx.array([picture.tokens])
    inputs = {name: mx.array(value) for name, value in (picture.inputs or {}).items()}
    pixels = inputs.pop("pixel_values", None)
    made = network.model.get_input_embeddings(tokens, pixels, mask=mx.ones_like(tokens), **inputs)
    values = {field.name: getattr(made, field.name) for field in fields(made)}
    if others := sorted(name for name, value in values.items() if value is not None and name not in KNOWN | UNUSED):
        raise UnknownInputs(f"its pictures come with {' and '.join(others)}")
    if (places := values["inputs_embeds"].shape[1]) != len(picture.tokens):
        raise UnknownInputs(f"it makes {places} places of the {len(picture.tokens)} tokens that stand for it")
    deepstack = values.get("deepstack_visual_embeds")
    features = Features(values["inputs_embeds"], list(deepstack) if deepstack is not None else [])
    mx.eval(features.embeds, features.deepstack)
    picture.take(features)


def positions(network: SeeingNetwork, layout: ImageLayout, tokens: mx.array) -> tuple[mx.array, RopeDelta]:
    """Of a prompt's beginning [1, L] with all of its pictures: [3, 1, L], and how far what follows is behind."""
    grids = [mx.array(place.picture.grid) for place in layout.places if place.picture.grid is not None]
    grid = mx.concatenate(grids) if grids else None
    places, deltas = network.model.language_model.get_rope_index(tokens, image_grid_thw=grid)
    return places, RopeDelta(deltas.reshape(1, 1).astype(mx.int32))
