"""Read how a folder's model makes a vector of a text, from the files of sentence-transformers."""

import re
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from lmwire_protocol import RequestError
from lmwire_protocol.imports import lazy_pattern

from ..models.model_files import bad_model, read_any_json, read_json

ENCODERS: Final = ("bert", "modernbert", "xlm-roberta", "qwen3_vl_embedding")
"""Model types that make vectors alone, unless they have a classifier's head."""
DECODERS: Final = ("qwen3", "gemma3_text", "lfm2", "ministral3", "qwen3_vl")
"""Model types that make vectors if they were trained for it."""
IMAGE_TYPES: Final = ("qwen3_vl", "qwen3_vl_embedding")
"""Model types that also make vectors of images."""
HEADS: Final = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_NAME: Final = lazy_pattern(r"(?<![a-z])embedding(?![a-z])", re.IGNORECASE)


class EmbeddingRecipe(Struct, frozen=True):
    """The steps before and after the network."""

    prompt: str = ""
    """The text before every input."""
    lower_case: bool = False
    max_tokens: int | None = None
    """Maximum number of tokens of a text; None if the network alone has a limit."""
    pooling: dict[str, Any] | None = None
    """The pooling of the network's outputs, as sentence-transformers configures it; None for the default."""
    dense: bool = False
    """True if dense layers follow the pooling."""
    normalized: bool = True
    """True if every vector has length 1, whatever the request."""

    @classmethod
    def read(cls, folder: Path) -> "EmbeddingRecipe":
        """Read the recipe of a folder.

        Raises:
            RequestError: bad_model, unsupported.
        """
        kinds = {_kind(module): str(module.get("path", "")) for module in _modules(folder)}
        if unknown := sorted(kinds.keys() - {"Transformer", "Pooling", "Dense", "Normalize"}):
            problem = f"{folder} makes its vectors in a way that this worker does not support: {', '.join(unknown)}"
            raise RequestError("unsupported", problem)
        settings = _optional(folder / "config_sentence_transformers.json")
        text = _optional(folder / "sentence_bert_config.json")
        pooling = _optional(folder / (kinds.get("Pooling") or "1_Pooling") / "config.json")
        return cls(
            prompt=(settings.get("prompts") or {}).get(settings.get("default_prompt_name") or "", ""),
            lower_case=bool(text.get("do_lower_case")),
            max_tokens=text.get("max_seq_length"),
            pooling=pooling or None,
            dense="Dense" in kinds,
            normalized=not kinds or "Normalize" in kinds or not pooling,
        )


def is_embedding_model(folder: Path, config: dict[str, Any]) -> bool:
    """Return whether a folder's model is an embedding model.

    Args:
        folder: The model's folder.
        config: Its config.json.
    """
    if (folder / "modules.json").exists() or (folder / "1_Pooling").is_dir():
        return True
    kind, names = config.get("model_type"), [str(name) for name in config.get("architectures") or ()]
    if kind in ENCODERS:
        return not any(name.endswith(HEADS) for name in names)
    # Conversions lose the files of sentence-transformers. Then only the name remains: the folder's or the hub's.
    return kind in DECODERS and bool(_NAME.search("/".join(folder.parts[-3:])))


def takes_images(config: dict[str, Any]) -> bool:
    """Return whether an embedding model also makes vectors of images."""
    return config.get("model_type") in IMAGE_TYPES


def _modules(folder: Path) -> list[dict[str, Any]]:
    path = folder / "modules.json"
    if not path.exists():
        return []
    modules = read_any_json(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise bad_model(path, "is not a list of modules")
    return modules


def _kind(module: dict[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}
