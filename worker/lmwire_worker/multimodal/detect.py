"""Whether a model takes images, and can be shown them here. Imports no model library."""

from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from ..models.folder_check import check_safetensors

SERVED: Final = (
    "gemma3", "gemma4", "gemma4_unified", "glm4v", "idefics3", "internvl_chat", "llama4", "llava", "llava_next",
    "llava_onevision", "mistral3", "paligemma", "pixtral", "qwen2_5_vl", "qwen3_5", "qwen3_vl", "smolvlm",
)  # fmt: skip
"""The types that the tests cover. Other types have processors that read a folder in ways of their own."""
_CONFIGS: Final = ("vision_config", "vision_cfg", "vision_tower", "mm_vision_tower", "img_processor", "visual")
_WEIGHTS: Final = ("vision", "visual", "image", "patch_embed")


def sees(folder: Path, config: dict[str, Any]) -> bool:
    """Whether a model's folder has an encoder for images: its weights too, which conversions to text leave out."""
    return any(config.get(name) for name in _CONFIGS) and any(
        part in name
        for path in folder.glob("model*.safetensors")
        for name in check_safetensors(path)
        for part in _WEIGHTS
    )


def is_served(config: dict[str, Any]) -> bool:
    """Return whether models of this type are shown images."""
    return config.get("model_type") in SERVED


def unserved(folder: Path, config: dict[str, Any]) -> RequestError:
    """Return the error for a model of another type.

    Args:
        folder: The model's.
        config: Its config.json.
    """
    return RequestError("unsupported", f"{folder} {unserved_problem(config)}")


def unserved_problem(config: dict[str, Any]) -> str:
    """Return what is wrong with a model of another type, as the rest of a sentence."""
    return f"is a model that sees of the type `{config['model_type']}`; those served are {', '.join(SERVED)}"
