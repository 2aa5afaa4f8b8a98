"""Images and sounds as a model takes them: the tokens that stand for one, and what its encoder is given."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..media import Image, Kind, Sound
from . import audio_input
from .feature_cache import Shelf

PLACEHOLDERS: Final[dict[Kind, tuple[str, ...]]] = {"image": ("image_token", "boi_token"), "sound": ("audio_token",)}
"""Where processors have what stands for one: by different names, some of which mean something else in others."""
UNNAMED: Final[dict[Kind, tuple[str, ...]]] = {"image": ("<image>",), "sound": ()}
"""What stands for one where a processor knows it without having it anywhere, as InternVL's does."""


@dataclass(frozen=True)
class Features:
    """What the model takes in the place of a picture's tokens, in the order of the tokens."""

    embeds: Any
    """[1, tokens, width]"""
    deepstack: list[Any]
    """What is added behind the first layers, of each of them [image tokens, width]; none for most models."""

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return self.embeds.nbytes + sum(layer.nbytes for layer in self.deepstack)


class Picture:
    """An image or a sound as one model takes it: what it sees of the one, and what it hears of the other.

    Args:
        digest: Of the file.
        text: What stands for it in a prompt's text.
        tokens: Those of the text, from the first that stands for a part of it to the last.
        inputs: What the processor made of it, for the encoder.
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

    @property
    def mark(self) -> int:
        """The token that stands for a part of it."""
        return self.tokens[0]

    def take(self, features: Features) -> None:
        """It is encoded."""
        self.features, self.inputs = features, None
        self.nbytes = features.nbytes


class UnknownProcessor(Exception):
    """What a model's processor makes of images, or of sounds, cannot be taken apart."""


Prepare = Callable[[str, Sequence[Image | Sound]], dict[str, Any]]
"""A text, and what its placeholders stand for, as the model takes them."""


@dataclass(frozen=True, slots=True)
class Sense:
    """Images, or sounds, as a model is given them."""

    kind: Kind
    mark: int
    """The token that stands for a part of one."""
    placeholder: str
    """What stands for one in a text that the processor has not seen."""
    pace: Any = ()
    """Of sounds: see `hearing.pace`."""


class Pictures:
    """Makes pictures of images and sounds, and keeps the latest. May be called from any thread.

    Args:
        processor: mlx-vlm's, with a tokenizer that nobody else uses.
        prepare: Runs it.
    """

    def __init__(self, processor: Any, prepare: Prepare) -> None:
        self.prepare = prepare
        self.senses: dict[Kind, Sense] = {}
        """What the model takes."""
        self._processor = processor
        self.shelf = Shelf()
        """The latest."""
        self.token_bytes = 0
        """What the features of a picture take, for each of its tokens; 0 until one was encoded."""
        self._lock = threading.Lock()

    def learn(self, kind: Kind, mark: int, trial: Image | Sound) -> None:
        """Takes a kind from now on.

        Args:
            kind: Images or sounds.
            mark: The token that stands for a part of one.
            trial: One to try the processor with.

        Raises:
            UnknownProcessor: it works in no known way.
        """
        reason = ""
        named = [getattr(self._processor, name, None) for name in PLACEHOLDERS[kind]]
        for found in (*named, *UNNAMED[kind]):
            placeholder = getattr(found, "content", found)
            if isinstance(placeholder, str) and placeholder:
                try:
                    self.senses[kind] = self._sense(Sense(kind, mark, placeholder), trial)
                    return
                except Exception as error:
                    reason = reason or f": {error}"
        raise UnknownProcessor(f"its processor does not say what stands for {_ONE[kind]}{reason}")

    def of(self, medium: Image | Sound, *, keep: bool = True) -> Picture:
        """The picture of an image or a sound, of a kind that the model takes.

        Args:
            medium: What it is of.
            keep: Take one that is kept, and keep it; otherwise it is made anew, for who asks alone.

        Raises:
            Problem: the model would not hear all of the sound.
            Exception: the processor's own, when it cannot take it.
        """
        sense = self.senses["image" if isinstance(medium, Image) else "sound"]
        with self._lock:  # processors are written for one thread
            if not keep:
                return self._process(sense, medium)
            picture = self.shelf.find(medium.digest) or self._process(sense, medium)
            self.shelf.put(picture)
        return picture

    def recall(self, digest: bytes, kind: Kind) -> Picture | None:
        """The picture of a file that is kept, if it was made of what the file is taken for."""
        picture = self.shelf.find(digest)
        return picture if picture and picture.mark == self.senses[kind].mark else None

    def _sense(self, sense: Sense, trial: Image | Sound) -> Sense:
        picture = self._process(sense, trial)
        if isinstance(trial, Image):
            return sense
        longer = self._process(sense, Sound(np.tile(trial.samples, 2), trial.rate, trial.digest))
        return replace(sense, pace=audio_input.pace(picture, longer, trial.seconds))

    def _process(self, sense: Sense, medium: Image | Sound) -> Picture:
        made = self.prepare(sense.placeholder, [medium])
        # Arrays of MLX belong to the thread that made them until they are evaluated.
        inputs = {name: np.array(value) for name, value in made.items() if value is not None}
        tokens: list[int] = inputs.pop("input_ids").flatten().tolist()
        inputs.pop("attention_mask", None)
        text = self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if self._tokenizer.encode(text, add_special_tokens=False) != tokens or sense.mark not in tokens:
            raise UnknownProcessor(f"what its processor writes for {_ONE[sense.kind]} is no text")
        first, last = tokens.index(sense.mark), len(tokens) - tokens[::-1].index(sense.mark)
        picture = Picture(medium.digest, text, tokens[first:last], inputs, self.token_bytes)
        if isinstance(medium, Sound) and len(sense.pace):
            audio_input.check_whole(medium, picture, sense.pace)
        return picture

    @property
    def _tokenizer(self) -> Any:
        return self._processor.tokenizer


_ONE: Final[dict[Kind, str]] = {"image": "an image", "sound": "a sound"}
