"""Read a multimodal model's folder with mlx-vlm."""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx_vlm.utils import load_config, load_model, load_processor, process_inputs

from lmwire_protocol import RequestError

from ..media import Image, MediaKind, Sound
from ..media.noise import noise_image, noise_sound
from ..models.config_check import THINKER_CONFIG, understanding_part
from ..models.weights import SharedWeights, list_files, summarize_exception
from .audio_input import resample_sound
from .input_builder import MediaInputBuilder, UnsupportedProcessor
from .network import MultimodalNetwork, UnsupportedCache

PLACEHOLDER_TOKEN_FIELDS: Final[dict[MediaKind, tuple[str, ...]]] = {
    "image": ("image_token_id", "image_token_index"),
    "sound": ("audio_token_id", "audio_token_index"),
}
"""Fields of a configuration, or of a processor, that name the placeholder token."""


def open_base(folder: Path, *, trust_remote_code: bool) -> SharedWeights:
    """Open a model without reading its weights, which have sizes alone.

    Args:
        folder: The model's folder.
        trust_remote_code: Whether the folder's own code may run.

    Raises:
        RequestError: bad_model, unsupported.
    """
    files = list_files(folder)
    try:
        model: Any = load_model(folder, lazy=True, trust_remote_code=trust_remote_code)
        if hasattr(model, "disable_talker"):
            model.disable_talker()  # answers are text
        network = MultimodalNetwork(model)
        network.make_cache()
    except UnsupportedCache as error:
        raise unsupported_model(folder, str(error)) from None
    except BaseException as error:  # models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    return SharedWeights(folder, files, network, _described(load_config(folder), model.config))


def open_processor(
    folder: Path, network: MultimodalNetwork, *, trust_remote_code: bool
) -> tuple[Any, MediaInputBuilder]:
    """Open a model's processor. Return it, and the builder of media inputs that uses it.

    Args:
        folder: The model's folder.
        network: The model.
        trust_remote_code: Whether the folder's own code may run.

    Raises:
        RequestError: bad_model, unsupported.
    """
    try:
        processor: Any = load_processor(folder, add_detokenizer=False, trust_remote_code=trust_remote_code)
    except BaseException as error:  # transformers raises whatever its processors raise
        raise RequestError(
            "bad_model", f"the processor of {folder} does not load: {summarize_exception(error)}"
        ) from None
    inputs = MediaInputBuilder(processor, partial(run_processor, processor))
    if (token := _placeholder_token("image", network, processor)) is None:
        raise unsupported_model(folder, "it does not say which token stands for an image")
    try:
        inputs.add_modality("image", token, noise_image())
    except UnsupportedProcessor as error:
        raise unsupported_model(folder, str(error)) from None
    if (token := _placeholder_token("sound", network, processor)) is not None:
        with contextlib.suppress(UnsupportedProcessor):  # such a model serves images alone
            inputs.add_modality("sound", token, noise_sound())
    return processor, inputs


def run_processor(processor: Any, text: str, media: Sequence[Image | Sound]) -> dict[str, Any]:
    """Return the model's inputs for a text with images and sounds: `input_ids`, `pixel_values` and others by name.

    Args:
        processor: mlx-vlm's processor.
        text: The text, with a placeholder for each medium.
        media: The images and sounds, in order.

    Raises:
        MediaError: A sound is too long or too short.
        Exception: The processor's own error.
    """
    tokenizer = processor.tokenizer
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token  # there is one row, but all may ask for it
    images = [medium.pixels for medium in media if isinstance(medium, Image)] or None
    sounds = [resample_sound(medium, processor) for medium in media if isinstance(medium, Sound)]
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
        # LLaVA's processor passes the tokenizer's padding option to its image processor. One row needs no padding.
        return dict(processor(text=[text], images=images, return_tensors="mlx"))


def unsupported_model(folder: Path, reason: str) -> RequestError:
    """Return the error for a model that this worker cannot give images to.

    Args:
        folder: The model's folder.
        reason: What is wrong with it.
    """
    return RequestError("unsupported", f"{folder} takes images in a way that this worker does not support: {reason}")


def _placeholder_token(kind: MediaKind, network: MultimodalNetwork, processor: Any) -> int | None:
    config = getattr(network.model.config, THINKER_CONFIG, network.model.config)
    tokens = [getattr(owner, name, None) for owner in (config, processor) for name in PLACEHOLDER_TOKEN_FIELDS[kind]]
    return next((token for token in tokens if isinstance(token, int)), None)


def _described(config: dict[str, Any], model_config: Any) -> dict[str, Any]:
    """Return the folder's own configuration, completed by mlx-vlm's defaults for the architecture."""
    model_config = getattr(model_config, THINKER_CONFIG, model_config)
    text_config = getattr(model_config, "text_config", None)
    vocab_size = getattr(text_config, "vocab_size", None)
    known = {"vocab_size": vocab_size} if isinstance(vocab_size, int) else {}
    return {"text_config": config.get("llm_config"), **understanding_part(config), **known}
