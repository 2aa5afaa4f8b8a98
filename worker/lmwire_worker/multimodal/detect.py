"""Detect models that take images, and those that this worker supports. This module imports no model library."""

from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from ..models.config_check import understanding_part
from ..models.folder_check import check_safetensors

SUPPORTED_TYPES: Final = (
    "gemma3", "gemma4", "gemma4_unified", "glm4v", "idefics3", "internvl_chat", "llama4", "llava", "llava_next",
    "llava_onevision", "mistral3", "paligemma", "pixtral", "qwen2_5_vl", "qwen3_5", "qwen3_omni_moe", "qwen3_vl",
    "smolvlm",
)  # fmt: skip
"""Model types that the tests cover. Other types have processors that read a folder in ways of their own."""
_CONFIGS: Final = ("vision_config", "vision_cfg", "vision_tower", "mm_vision_tower", "img_processor", "visual")
_WEIGHTS: Final = ("vision", "visual", "image", "patch_embed")


def takes_images(folder: Path, config: dict[str, Any]) -> bool:
    """Return whether a model has an encoder for images, with its weights: conversions to text models drop these.

    Args:
        folder: The model's folder.
        config: Its config.json.
    """
    config = understanding_part(config)
    return any(config.get(name) for name in _CONFIGS) and any(
        part in name
        for path in folder.glob("model*.safetensors")
        for name in check_safetensors(path)
        for part in _WEIGHTS
    )


def is_supported(config: dict[str, Any]) -> bool:
    """Return whether this worker gives images to models of this type."""
    return config.get("model_type") in SUPPORTED_TYPES


def unsupported_error(folder: Path, config: dict[str, Any]) -> RequestError:
    """Return the error for a model of another type.

    Args:
        folder: The model's folder.
        config: Its config.json.
    """
    return RequestError("unsupported", f"{folder} {unsupported_problem(config)}")


def unsupported_problem(config: dict[str, Any]) -> str:
    """Return the reason that a model of another type is unsupported, as the rest of a sentence."""
    supported = ", ".join(SUPPORTED_TYPES)
    return f"is a model that takes images, of the type `{config['model_type']}`; the supported types are {supported}"
