"""A folder into memory, through mlx-vlm."""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
import numpy as np
import PIL.Image
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_vlm.utils import load_config, load_model, load_processor, process_inputs

from lmwire_protocol import RequestError

from ..media import Image, Kind, Sound
from ..models.shared_weights import SharedWeights, list_files
from ..models.weights import summarize_exception
from .audio_input import RATE, samples_of
from .media_input import Pictures, UnknownProcessor
from .network import SeeingNetwork, UnknownCache

MARKS: Final[dict[Kind, tuple[str, ...]]] = {
    "image": ("image_token_id", "image_token_index"),
    "sound": ("audio_token_id", "audio_token_index"),
}
"""Where a model's configuration, or its processor, says which token stands for a part of one."""
TRIAL_S: Final = 1.28
"""Seconds: whole windows, whatever a model's are. mlx-vlm takes what fills the last one up for sound."""


def open_base(folder: Path, *, trust_remote_code: bool) -> SharedWeights:
    """A model whose weights have sizes, and are not read yet.

    Raises:
        RequestError: bad_model, unsupported.
    """
    files = list_files(folder)
    try:
        model: Any = load_model(folder, lazy=True, trust_remote_code=trust_remote_code)
        network = SeeingNetwork(model)
        network.make_cache()
    except UnknownCache as error:
        raise refusal(folder, str(error)) from None
    except Exception as error:  # models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    return SharedWeights(folder, files, network, _described(load_config(folder), model.config))


def open_pictures(folder: Path, network: SeeingNetwork, *, trust_remote_code: bool) -> tuple[Any, Pictures]:
    """A model's processor, and what makes pictures with it.

    Raises:
        RequestError: bad_model, unsupported.
    """
    try:
        processor: Any = load_processor(folder, add_detokenizer=False, trust_remote_code=trust_remote_code)
    except Exception as error:  # transformers raises whatever its processors raise
        raise RequestError(
            "bad_model", f"the processor of {folder} does not load: {summarize_exception(error)}"
        ) from None
    pictures = Pictures(processor, partial(prepare, processor))
    if (mark := _mark("image", network, processor)) is None:
        raise refusal(folder, "it does not say which token stands for an image")
    try:
        pictures.learn("image", mark, trial_image())
    except UnknownProcessor as error:
        raise refusal(folder, str(error)) from None
    if (mark := _mark("sound", network, processor)) is not None:
        with contextlib.suppress(UnknownProcessor):  # what it cannot hear it is told of
            pictures.learn("sound", mark, trial_sound())
    return processor, pictures


def prepare(processor: Any, text: str, media: Sequence[Image | Sound]) -> dict[str, Any]:
    """A text with images and sounds as the model takes them: `input_ids`, `pixel_values` and what else it asks for.

    Raises:
        Problem: a sound is too long.
        Exception: the processor's own.
    """
    tokenizer = processor.tokenizer
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token  # there is one row, but all may ask for it
    images = [medium.pixels for medium in media if isinstance(medium, Image)] or None
    sounds = [samples_of(medium, processor) for medium in media if isinstance(medium, Sound)]
    made = _processed(processor, text, images, sounds)
    tokens: list[int] = mx.array(made["input_ids"]).flatten().tolist()  # pyright: ignore[reportAssignmentType]
    if tokens[0] == tokenizer.bos_token_id and not text.startswith(tokenizer.bos_token):
        tokens = tokens[1:]  # some put it before every text, asked or not
    return made | {"input_ids": mx.array([tokens]), "attention_mask": mx.ones((1, len(tokens)), mx.int32)}


def _processed(processor: Any, text: str, images: Sequence[Any] | None, sounds: Sequence[Any]) -> dict[str, Any]:
    try:
        return dict(process_inputs(processor, [text], images, sounds, add_special_tokens=False))
    except TypeError:
        if sounds:
            raise
        # LLaVA's hands its image processor what is for its tokenizer: padding, of which one row needs none.
        return dict(processor(text=[text], images=images, return_tensors="mlx"))


def lend_template(tokenizer: TokenizerWrapper, processor: Any) -> None:
    """Gives a tokenizer the chat template that some models have beside their processor only."""
    template = getattr(processor, "chat_template", None)
    if template and not tokenizer.has_chat_template:
        tokenizer._tokenizer.chat_template = template
        tokenizer.has_chat_template = True


def trial_image(seed: int = 0, width: int = 96, height: int = 64) -> Image:
    """Noise: all of an image counts."""
    noise = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image(PIL.Image.fromarray(noise), seed.to_bytes(32, "little"))


def trial_sound(seed: int = 0) -> Sound:
    """Noise: all of a sound counts."""
    noise = np.random.default_rng(seed).normal(0, 0.1, round(TRIAL_S * RATE)).astype(np.float32)
    return Sound(noise, RATE, b"sound" + seed.to_bytes(27, "little"))


def refusal(folder: Path, reason: str) -> RequestError:
    """Of a model that this worker cannot show images to."""
    return RequestError("unsupported", f"{folder} is a model that sees, of a kind that is not served: {reason}")


def _mark(kind: Kind, network: SeeingNetwork, processor: Any) -> int | None:
    config = network.model.config
    tokens = [getattr(owner, name, None) for owner in (config, processor) for name in MARKS[kind]]
    return next((token for token in tokens if isinstance(token, int)), None)


def _described(config: dict[str, Any], model_config: Any) -> dict[str, Any]:
    """The folder's own configuration, completed by what mlx-vlm knows of the architecture."""
    text_config = getattr(model_config, "text_config", None)
    vocab_size = getattr(text_config, "vocab_size", None)
    known = {"vocab_size": vocab_size} if isinstance(vocab_size, int) else {}
    return {"text_config": config.get("llm_config"), **config, **known}
