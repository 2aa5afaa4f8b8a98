"""Build media inputs with a model's processor, and cache them."""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..media import Image, MediaKind, Sound
from . import audio_input
from .media_input import FeatureCache, MediaInput

PLACEHOLDER_ATTRIBUTES: Final[dict[MediaKind, tuple[str, ...]]] = {
    "image": ("image_token", "boi_token"),
    "sound": ("audio_token",),
}
"""Attributes in which processors name their placeholder. The same name can mean something else in another processor."""
UNNAMED_PLACEHOLDERS: Final[dict[MediaKind, tuple[str, ...]]] = {"image": ("<image>",), "sound": ()}
"""Placeholders that a processor knows without an attribute, as InternVL's does."""
_WITH_ARTICLE: Final[dict[MediaKind, str]] = {"image": "an image", "sound": "a sound"}

RunProcessor = Callable[[str, Sequence[Image | Sound]], dict[str, Any]]
"""Runs a processor on a text and the media of its placeholders. Returns the model's inputs by name."""


class UnsupportedProcessor(Exception):
    """The processor's output for images, or for sounds, has an unknown structure."""


@dataclass(frozen=True, slots=True)
class Modality:
    """One kind of media that a model takes, with its placeholder."""

    kind: MediaKind
    placeholder_token: int
    """The token that stands for a part of an image or a sound."""
    placeholder: str
    """The text that stands for one before the processor has run."""
    features_per_second: Any = ()
    """For sounds: see `audio_input.features_per_second`."""


class MediaInputBuilder:
    """Builds media inputs, and caches the most recent ones. May be called from any thread.

    Args:
        processor: mlx-vlm's processor, with a tokenizer of its own.
        run_processor: Runs it.
    """

    def __init__(self, processor: Any, run_processor: RunProcessor) -> None:
        self.run_processor = run_processor
        self.modalities: dict[MediaKind, Modality] = {}
        """The kinds of media that the model takes."""
        self._processor = processor
        self.feature_cache = FeatureCache()
        self.token_bytes = 0
        """Bytes of features for each token of an input; 0 until one was encoded."""
        self._lock = threading.Lock()

    def add_modality(self, kind: MediaKind, placeholder_token: int, sample: Image | Sound) -> None:
        """Take a kind of media from now on.

        Args:
            kind: Images or sounds.
            placeholder_token: The token that stands for a part of one.
            sample: An image or a sound to try the processor with.

        Raises:
            UnsupportedProcessor: The processor works in no known way.
        """
        reason = ""
        named = [getattr(self._processor, name, None) for name in PLACEHOLDER_ATTRIBUTES[kind]]
        for found in (*named, *UNNAMED_PLACEHOLDERS[kind]):
            placeholder = getattr(found, "content", found)
            if isinstance(placeholder, str) and placeholder:
                try:
                    self.modalities[kind] = self._measure(Modality(kind, placeholder_token, placeholder), sample)
                    return
                except Exception as error:  # processors raise whatever a wrong placeholder leads to
                    reason = reason or f": {error}"
        raise UnsupportedProcessor(f"its processor does not say what stands for {_WITH_ARTICLE[kind]}{reason}")

    def keep_modalities(self, kinds: Collection[MediaKind]) -> None:
        """Take these kinds of media alone."""
        self.modalities = {kind: self.modalities[kind] for kind in kinds}

    def record_token_bytes(self, token_bytes: int) -> None:
        """Record the bytes of features for each token. The largest value counts."""
        self.token_bytes = max(self.token_bytes, token_bytes)

    def build(self, medium: Image | Sound, *, use_cache: bool = True) -> MediaInput:
        """Return the input of an image or a sound, of a kind that the model takes.

        Args:
            medium: The image or sound.
            use_cache: Return a cached input if there is one, and cache a new one.

        Raises:
            MediaError: The processor would drop a part of the sound.
            Exception: The processor's own error, if it refuses the medium.
        """
        modality = self.modalities["image" if isinstance(medium, Image) else "sound"]
        with self._lock:  # processors are written for one thread
            if not use_cache:
                return self._process(modality, medium)
            media_input = self.feature_cache.find(medium.digest) or self._process(modality, medium)
            self.feature_cache.add(media_input)
        return media_input

    def find_cached(self, digest: bytes, kind: MediaKind) -> MediaInput | None:
        """Return the cached input of a file, or None.

        Args:
            digest: SHA-256 of the file.
            kind: The kind of media that the request takes the file for.
        """
        found = self.feature_cache.find(digest)
        return found if found and found.placeholder_token == self.modalities[kind].placeholder_token else None

    def _measure(self, modality: Modality, sample: Image | Sound) -> Modality:
        """Try the processor, and for sounds measure how many features it makes of a second."""
        media_input = self._process(modality, sample)
        if isinstance(sample, Image):
            return modality
        longer = self._process(modality, Sound(np.tile(sample.samples, 2), sample.rate, sample.digest))
        per_second = audio_input.features_per_second(media_input, longer, sample.seconds)
        return replace(modality, features_per_second=per_second)

    def _process(self, modality: Modality, medium: Image | Sound) -> MediaInput:
        outputs = self.run_processor(modality.placeholder, [medium])
        # MLX arrays belong to the thread that made them until they are evaluated.
        inputs = {name: np.array(value) for name, value in outputs.items() if value is not None}
        tokens: list[int] = inputs.pop("input_ids").flatten().tolist()
        inputs.pop("attention_mask", None)
        token = modality.placeholder_token
        text = self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if self._tokenizer.encode(text, add_special_tokens=False) != tokens or token not in tokens:
            raise UnsupportedProcessor(f"what its processor writes for {_WITH_ARTICLE[modality.kind]} is not a text")
        first, last = tokens.index(token), len(tokens) - tokens[::-1].index(token)
        media_input = MediaInput(medium.digest, text, tokens[first:last], inputs, self.token_bytes)
        if isinstance(medium, Sound) and len(modality.features_per_second):
            audio_input.check_complete(medium, media_input, modality.features_per_second)
        return media_input

    @property
    def _tokenizer(self) -> Any:
        return self._processor.tokenizer
