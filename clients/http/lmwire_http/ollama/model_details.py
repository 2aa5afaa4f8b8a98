"""Descriptions of models that several endpoints of Ollama's API have."""

import hashlib
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from ..pool import ServedModel


class ModelDetails(Struct, kw_only=True):
    """The form of a model. What is unknown before the first load is empty."""

    parent_model: Literal[""] = ""
    format: Literal["safetensors"] = "safetensors"
    family: str
    """The architecture's name in config.json."""
    families: list[str]
    parameter_size: Literal[""] = ""
    """Unknown: the files do not have it."""
    quantization_level: str
    """Such as `int4`; empty for weights that are not quantized."""


def details_of(served: ServedModel) -> ModelDetails:
    """Return the form of a model."""
    family = served.model_type or ""
    return ModelDetails(
        family=family,
        families=[family] if family else [],
        quantization_level=f"int{served.bits}" if served.bits else "",
    )


def digest_of(served: ServedModel) -> str:
    """Return a hexadecimal name for this version of the model's files. It is not their checksum."""
    return hashlib.sha256(f"{served.path}\0{served.created}".encode(errors="surrogateescape")).hexdigest()


def modified_at(served: ServedModel) -> datetime:
    """Return the time of the model files; the year 1970 if it is unknown."""
    return datetime.fromtimestamp(served.created, UTC)
