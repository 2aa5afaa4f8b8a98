"""Detect models that speak. This module imports no model library."""

from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

EXAMINED: Final = ("qwen3_tts",)
"""Model types that are served."""
_KOKORO_FIELDS: Final = {"istftnet", "plbert", "n_token"}
"""Fields of the config.json of Kokoro, which may lack a `model_type`."""


def is_synthesis_model(config: dict[str, Any]) -> bool:
    """Return whether a config.json is that of a model that speaks, of a type that is known."""
    return config.get("model_type") in EXAMINED or _is_kokoro(config)


def check_examined(folder: Path, config: dict[str, Any]) -> None:
    """Refuse models that speak and whose code was not examined.

    Args:
        folder: The model's folder, for the error.
        config: Its config.json.

    Raises:
        RequestError: unsupported.
    """
    if config.get("model_type") not in EXAMINED:
        problem = "is a Kokoro model, whose packages fetch code and files while it speaks"
        raise RequestError("unsupported", f"{folder} {problem}; load a Qwen3-TTS model instead")


def _is_kokoro(config: dict[str, Any]) -> bool:
    return config.get("model_type") in (None, "kokoro") and config.keys() >= _KOKORO_FIELDS
