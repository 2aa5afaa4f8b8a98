"""Images as a model takes them: the tokens that stand for one, and what its encoder is given."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .shelf import Shelf

if TYPE_CHECKING:
    from ..media import Image


@dataclass(frozen=True)
class Features:
    """What the model takes in the place of an image's tokens, in the order of the tokens."""

    embeds: Any
    """[1, tokens, width]"""
    deepstack: list[Any]
    """What is added behind the first layers, of each of them [image tokens, width]; none for most models."""

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return self.embeds.nbytes + sum(layer.nbytes for layer in self.deepstack)


class Picture:
    """An image as one model takes it.

    Args:
        digest: Of the image.
        text: What stands for it in a prompt's text.
        tokens: Those of the text, from the first that stands for a part of the image to the last.
        inputs: What the processor made of the image, for the encoder.
        token_bytes: What its features will take, for each token; 0 where that is not known yet.
    """

    def __init__(
        self, digest: bytes, text: str, tokens: list[int], inputs: dict[str, Any], token_bytes: int = 0
    ) -> None:
        self.digest = digest
        self.text = text
        self.tokens = tokens
        self.grid: Any = inputs.get("image_grid_thw")
        """int [1, 3]: patches in time, down and across; None for models that do not ask."""
        self.inputs: dict[str, Any] | None = inputs
        """None once it is encoded."""
        self.features: Features | None = None
        """None until it is encoded."""
        self.nbytes: int = max(sum(getattr(value, "nbytes", 0) for value in inputs.values()), token_bytes * len(tokens))
        """What it takes, or will take when it is encoded, if that is more: so it never grows."""
        self.used = 0.0
        """When a request last asked for it, on the clock of whoever keeps it."""

    def take(self, features: Features) -> None:
        """It is encoded."""
        self.features, self.inputs = features, None
        self.nbytes = features.nbytes


class UnknownProcessor(Exception):
    """What a model's processor makes of images cannot be taken apart."""


Prepare = Callable[[str, Sequence[Any]], dict[str, Any]]
"""A text, and the images (of Pillow) for the placeholders in it, as the model takes them."""


class Pictures:
    """Makes pictures of images, and keeps the latest. May be called from any thread.

    Args:
        processor: mlx-vlm's, with a tokenizer that nobody else uses.
        prepare: Runs it.
        image_token: The id of the tokens that stand for parts of an image.
        trial: An image to try the processor with.

    Raises:
        UnknownProcessor: it works in no known way.
    """

    def __init__(self, processor: Any, prepare: Prepare, image_token: int, trial: "Image") -> None:
        self.image_token = image_token
        self.prepare = prepare
        self._processor = processor
        self.shelf = Shelf()
        """The latest."""
        self.token_bytes = 0
        """What the features of an image take, for each of its tokens; 0 until one was encoded."""
        self._lock = threading.Lock()
        self.placeholder = self._find_placeholder(trial)
        """What stands for an image in a text that the processor has not seen."""

    def of(self, image: "Image") -> Picture:
        """An image's picture.

        Raises:
            Exception: the processor's own, when it cannot take the image.
        """
        with self._lock:  # processors are written for one thread
            picture = self.shelf.find(image.digest) or self._process(self.placeholder, image)
            self.shelf.put(picture)
        return picture

    def _find_placeholder(self, trial: "Image") -> str:
        """Processors call it by different names, and some of the names mean something else in others."""
        reason = ""
        for name in ("image_token", "boi_token"):
            placeholder = getattr(self._processor, name, None)
            placeholder = getattr(placeholder, "content", placeholder)
            if isinstance(placeholder, str) and placeholder:
                try:
                    self._process(placeholder, trial)
                except Exception as error:
                    reason = reason or f": {error}"
                else:
                    return placeholder
        raise UnknownProcessor(f"its processor does not say what stands for an image{reason}")

    def _process(self, placeholder: str, image: "Image") -> Picture:
        made = self.prepare(placeholder, [image.pixels])
        # Arrays of MLX belong to the thread that made them until they are evaluated.
        inputs = {name: np.array(value) for name, value in made.items() if value is not None}
        tokens: list[int] = inputs.pop("input_ids").flatten().tolist()
        inputs.pop("attention_mask", None)
        text = self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if self._tokenizer.encode(text, add_special_tokens=False) != tokens or self.image_token not in tokens:
            raise UnknownProcessor("what its processor writes for an image is no text")
        first, last = tokens.index(self.image_token), len(tokens) - tokens[::-1].index(self.image_token)
        return Picture(image.digest, text, tokens[first:last], inputs, self.token_bytes)

    @property
    def _tokenizer(self) -> Any:
        return self._processor.tokenizer
