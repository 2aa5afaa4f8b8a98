"""How a folder's model makes a vector of a text, as its files say it. They are those of sentence-transformers."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from ..models.model_files import bad_model, read_any_json, read_json

ENCODERS: Final = ("bert", "modernbert", "xlm-roberta", "qwen3_vl_embedding")
"""Types of models that do nothing else, unless they have the head of a classifier."""
DECODERS: Final = ("qwen3", "gemma3_text", "lfm2", "ministral3", "qwen3_vl")
"""Types of models that make vectors when they were trained for it."""
SEEING: Final = ("qwen3_vl", "qwen3_vl_embedding")
"""Of all these, those that make them of images as well."""
HEADS: Final = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_NAME: Final = re.compile(r"(?<![a-z])embedding(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Recipe:
    """What is done before the network and behind it."""

    prompt: str = ""
    """Put before every text."""
    lower_case: bool = False
    longest: int | None = None
    """Tokens of a text at most; None where only the network has a bound."""
    pooling: dict[str, Any] | None = None
    """Which of the network's outputs become the vector, in sentence-transformers' words; None for the usual ones."""
    dense: bool = False
    """Whether further layers change what was pooled."""
    normalized: bool = True
    """Whether every vector has length 1, whatever a request says."""

    @classmethod
    def of(cls, folder: Path) -> "Recipe":
        """Reads it off a folder.

        Raises:
            RequestError: bad_model, unsupported.
        """
        kinds = {_kind(module): str(module.get("path", "")) for module in _modules(folder)}
        if unknown := sorted(kinds.keys() - {"Transformer", "Pooling", "Dense", "Normalize"}):
            problem = f"{folder} makes its vectors in a way that this worker does not know: {', '.join(unknown)}"
            raise RequestError("unsupported", problem)
        settings = _optional(folder / "config_sentence_transformers.json")
        text = _optional(folder / "sentence_bert_config.json")
        pooling = _optional(folder / (kinds.get("Pooling") or "1_Pooling") / "config.json")
        return cls(
            prompt=(settings.get("prompts") or {}).get(settings.get("default_prompt_name") or "", ""),
            lower_case=bool(text.get("do_lower_case")),
            longest=text.get("max_seq_length"),
            pooling=pooling or None,
            dense="Dense" in kinds,
            normalized=not kinds or "Normalize" in kinds or not pooling,
        )


def is_embedding_model(folder: Path, config: dict[str, Any]) -> bool:
    """Whether a folder's model makes vectors, and is for nothing else."""
    if (folder / "modules.json").exists() or (folder / "1_Pooling").is_dir():
        return True
    kind, names = config.get("model_type"), [str(name) for name in config.get("architectures") or ()]
    if kind in ENCODERS:
        return not any(name.endswith(HEADS) for name in names)
    # Conversions lose the files that say it, and then only the name is left: the folder's or the hub's.
    return kind in DECODERS and bool(_NAME.search("/".join(folder.parts[-3:])))


def sees(config: dict[str, Any]) -> bool:
    """Whether an embedding model makes vectors of images as well."""
    return config.get("model_type") in SEEING


def _modules(folder: Path) -> list[dict[str, Any]]:
    path = folder / "modules.json"
    if not path.exists():
        return []
    modules = read_any_json(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise bad_model(path, "is no list of modules")
    return modules


def _kind(module: dict[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}
