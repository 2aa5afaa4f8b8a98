"""Whether a model sees and hears here what it does in mlx-vlm: tried out when it is loaded."""

import copy
from collections.abc import Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_vlm.generate import generate_step

from ..media import Image, Kind, Sound
from .media_input import Pictures
from .network import SeeingNetwork
from .placeholders import ImageLayout, expand, find_layout
from .prefill import ImagePrefill
from .vision_model import trial_image, trial_sound

SLICE: Final = 5
"""Tokens: images and sounds are cut into."""
ROUNDING: Final = 0.2
"""By how many standard deviations of the logits rounding moves one, at most; another image moves some by more."""


class OtherSight(Exception):
    """The model does not get from an image, or a sound, what it gets in mlx-vlm."""


class Trial:
    """A prompt with two images, or two sounds, or two of each.

    Args:
        network: The model, its weights in memory.
        processor: mlx-vlm's.
        pictures: What is to be tried.
        kinds: Of them.

    Raises:
        Exception: the model's or the processor's own.
    """

    def __init__(self, network: SeeingNetwork, processor: Any, pictures: Pictures, kinds: Sequence[Kind]) -> None:
        self._network = network
        senses = [pictures.senses[kind] for kind in kinds]
        text = "".join(f"one {sense.placeholder} two {sense.placeholder} three " for sense in senses) + "four"
        pairs: dict[Kind, list[Image | Sound]] = {
            "image": [trial_image(), trial_image(1, 64, 96)],
            "sound": [trial_sound(), trial_sound(1)],
        }
        media = [medium for kind in kinds for medium in pairs[kind]]
        self._whole = pictures.prepare(text, media)
        taken = [pictures.of(medium) for medium in media]
        self._tokens: list[int] = processor.tokenizer.encode(expand(text, taken, senses), add_special_tokens=False)
        layout = find_layout(self._tokens, taken)
        assert layout is not None
        self._layout: ImageLayout = layout

    def check(self) -> None:
        """Raises OtherSight, and what the model itself raises."""
        if mx.array(self._whole["input_ids"]).flatten().tolist() != self._tokens:
            raise OtherSight("its processor writes several together otherwise than each by itself")
        theirs = self._theirs()
        for step, (ours, (_, logprobs)) in enumerate(zip(self._ours(theirs[0][0]), theirs, strict=True)):
            if not _same(ours, logprobs):
                place = "behind the prompt" if step == 0 else "behind its first token"
                raise OtherSight(f"its logits {place} are not those that mlx-vlm computes")

    @property
    def token_bytes(self) -> int:
        """What a picture's features take, for each of its tokens. Known once they were encoded."""
        pictures = [place.picture for place in self._layout.places]
        return max(-(-picture.nbytes // len(picture.tokens)) for picture in pictures)

    def batches(self) -> bool:
        """Whether a row with pictures and one without get together what they get alone."""
        seen, text = self._prefilled(), make_prompt_cache(self._network)
        self._network(mx.array([self._tokens[: self._layout.places[0].start]]), text)
        token = mx.array([[self._tokens[-1]]])
        alone = [self._network(token, copy.deepcopy(cache))[0, -1] for cache in (seen, text)]
        try:
            together = [type(cache).merge([cache, other]) for cache, other in zip(seen, text, strict=True)]
            both = self._network(mx.concatenate([token, token]), together)[:, -1]
        except Exception:  # a model's own code may count on one row
            return False
        return all(_same(row, both[index]) for index, row in enumerate(alone))

    def _ours(self, token: int) -> list[mx.array]:
        """The logits behind the prompt, and behind a next token."""
        cache = self._prefilled()
        first = self._network(mx.array([self._tokens[self._layout.end :]]), cache)[0, -1]
        second = self._network(mx.array([[token]]), cache)[0, -1]
        return [first, second]

    def _theirs(self) -> list[tuple[int, mx.array]]:
        """The most probable token behind the prompt and the one behind that, each with all log-probabilities."""
        inputs: dict[str, Any] = {  # some processors give numpy's arrays, which mlx-vlm passes on as its own
            name: mx.array(value) if isinstance(value, np.ndarray) else value for name, value in self._whole.items()
        }
        tokens, pixels = mx.array(inputs.pop("input_ids")), inputs.pop("pixel_values", None)
        mask = inputs.pop("attention_mask", None)
        steps = generate_step(tokens, self._network.model, pixels, mask, max_tokens=2, temperature=0.0, **inputs)
        return [(int(token), logprobs.flatten()) for token, logprobs in steps]

    def _prefilled(self) -> list[Any]:
        """A cache with the prompt up to its last picture."""
        beginning = self._tokens[: self._layout.end]
        work = ImagePrefill(self._network, self._layout, beginning, make_prompt_cache(self._network), 0)
        while work.done < work.end:
            work.advance(SLICE)
        return work.cache


def _same(one: mx.array, other: mx.array) -> bool:
    """Whether two rows of logits, or of their log-probabilities, are the same but for rounding."""
    one, other = (row.astype(mx.float32) - mx.logsumexp(row.astype(mx.float32)) for row in (one, other))
    return bool((mx.abs(one - other).max() <= ROUNDING * mx.std(other)).item())
