"""Whether a model takes images, and can be shown them here. Imports no model library."""

import json
from pathlib import Path
from typing import Any, Final

_CONFIGS: Final = ("vision_config", "vision_cfg", "vision_tower", "mm_vision_tower", "img_processor", "visual")
_WEIGHTS: Final = ("vision", "visual", "image", "patch_embed")


def sees(folder: Path, config: dict[str, Any]) -> bool:
    """Whether a model's folder has an encoder for images: its weights too, which conversions to text leave out."""
    return any(config.get(name) for name in _CONFIGS) and any(
        part in name for path in folder.glob("model*.safetensors") for name in _names(path) for part in _WEIGHTS
    )


def _names(path: Path) -> list[str]:
    """The tensors of a file that was checked."""
    with path.open("rb") as file:
        return list(json.loads(file.read(int.from_bytes(file.read(8), "little"))))
