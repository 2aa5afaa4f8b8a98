"""Check at load time that a model computes from images and sounds what it computes in mlx-vlm."""

import copy
from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_vlm.generate import generate_step

from ..media import Image, MediaKind, Sound
from ..media.noise import noise_image, noise_sound
from ..models.logit_comparison import MAX_ROUNDING, deviation, differ_by_rounding
from .input_builder import MediaInputBuilder
from .network import MultimodalNetwork
from .placeholders import MediaLayout, expand_placeholders, find_layout
from .prefill import MultimodalPrefill

CHUNK_TOKENS: Final = 5
"""Tokens of a prefill chunk: few, so that images and sounds are cut."""
TEXT_TOKENS: Final = 32
"""Minimum tokens of the text that shows how the model rounds."""
ROUNDING_MARGIN: Final = 3
"""Factor by which rounding may move the logits further after media than after a text."""
LEAST_TOLERANCE: Final = 0.05
"""Deviation of the logits that always counts as rounding. A model may give little weight to a sound beside words."""


class ParityError(Exception):
    """The model computes something else from an image, or a sound, than in mlx-vlm."""


class ParityCheck:
    """A check on a prompt with two images, or two sounds, or two of each.

    Args:
        network: The model, with its weights in memory.
        processor: mlx-vlm's processor.
        inputs: Builds the media inputs.
        kinds: Kinds of media in the prompt.

    Raises:
        Exception: The model's or the processor's own error.
    """

    def __init__(
        self, network: MultimodalNetwork, processor: Any, inputs: MediaInputBuilder, kinds: Sequence[MediaKind]
    ) -> None:
        self._network = network
        modalities = [inputs.modalities[kind] for kind in kinds]
        text = (
            "".join(f"one {modality.placeholder} two {modality.placeholder} three " for modality in modalities) + "four"
        )
        pairs: dict[MediaKind, list[Image | Sound]] = {
            "image": [noise_image(), noise_image(1, 64, 96)],
            "sound": [noise_sound(), noise_sound(1)],
        }
        media = [medium for kind in kinds for medium in pairs[kind]]
        self._whole = inputs.run_processor(text, media)
        taken = [inputs.build(medium) for medium in media]
        self._tokens: list[int] = processor.tokenizer.encode(
            expand_placeholders(text, taken, modalities), add_special_tokens=False
        )
        layout = find_layout(self._tokens, taken)
        assert layout is not None
        self._layout: MediaLayout = layout
        self._tolerance = min(max(LEAST_TOLERANCE, ROUNDING_MARGIN * self._rounding()), MAX_ROUNDING)

    def check(self) -> None:
        """Compare the logits after the prompt and after a first token.

        Raises:
            ParityError: They differ from mlx-vlm's.
            Exception: The model's own error.
        """
        if mx.array(self._whole["input_ids"]).flatten().tolist() != self._tokens:
            raise ParityError("its processor writes several together otherwise than each by itself")
        theirs = self._theirs()
        for step, (ours, (_, logprobs)) in enumerate(zip(self._ours(theirs[0][0]), theirs, strict=True)):
            if not differ_by_rounding(ours, logprobs, self._tolerance):
                place = "after the prompt" if step == 0 else "after its first token"
                raise ParityError(f"its logits {place} are not those that mlx-vlm computes")

    @property
    def token_bytes(self) -> int:
        """Bytes of features for each token of an input. Known after `check`."""
        media_inputs = [place.media_input for place in self._layout.ranges]
        return max(-(-one.nbytes // len(one.tokens)) for one in media_inputs)

    def supports_batching(self) -> bool:
        """Return whether a row with media and one without give the same results together as alone."""
        seen, text = self._prefilled(), make_prompt_cache(self._network)
        self._network(mx.array([self._tokens[: self._layout.ranges[0].start]]), text)
        token = mx.array([[self._tokens[-1]]])
        alone = [self._network(token, copy.deepcopy(cache))[0, -1] for cache in (seen, text)]
        try:
            together = [type(cache).merge([cache, other]) for cache, other in zip(seen, text, strict=True)]
            both = self._network(mx.concatenate([token, token]), together)[:, -1]
        except Exception:  # a model's own code may count on one row
            return False
        return differ_by_rounding(mx.stack(alone), both, self._tolerance)

    def _rounding(self) -> float:
        """Return how far the logits after the prompt's words move if these are computed in chunks.

        Large and small products are rounded differently, and how much of that reaches the logits depends on the model.
        """
        inside = {at for place in self._layout.ranges for at in range(place.start, place.stop)}
        words = [token for at, token in enumerate(self._tokens) if at not in inside]
        words *= -(-TEXT_TOKENS // len(words))
        whole = self._network(mx.array([words]), make_prompt_cache(self._network))[0, -1]
        cache = make_prompt_cache(self._network)
        chunks = [words[start : start + CHUNK_TOKENS] for start in range(0, len(words), CHUNK_TOKENS)]
        logits = [self._network(mx.array([chunk]), cache) for chunk in chunks]
        moved: Any = deviation(logits[-1][0, -1], whole).item()
        return moved

    def _ours(self, token: int) -> list[mx.array]:
        """Return the logits after the prompt, and after a next token."""
        cache = self._prefilled()
        first = self._network(mx.array([self._tokens[self._layout.end :]]), cache)[0, -1]
        second = self._network(mx.array([[token]]), cache)[0, -1]
        return [first, second]

    def _theirs(self) -> list[tuple[int, mx.array]]:
        """Return mlx-vlm's first two tokens, each with all log-probabilities."""
        inputs: dict[str, Any] = {  # some processors give numpy's arrays, which mlx-vlm passes on as its own
            name: mx.array(value) if isinstance(value, np.ndarray) else value for name, value in self._whole.items()
        }
        tokens, pixels = mx.array(inputs.pop("input_ids")), inputs.pop("pixel_values", None)
        mask = inputs.pop("attention_mask", None)
        steps = generate_step(tokens, self._network.model, pixels, mask, max_tokens=2, temperature=0.0, **inputs)
        return [(int(token), logprobs.flatten()) for token, logprobs in steps]

    def _prefilled(self) -> list[Any]:
        """Return a cache with the prompt up to its last media input."""
        beginning = self._tokens[: self._layout.end]
        work = MultimodalPrefill(self._network, self._layout, beginning, make_prompt_cache(self._network), 0)
        while work.done < work.end:
            work.advance(CHUNK_TOKENS)
        return work.cache
