"""Estimate the memory that a load needs from a model's files, without a model library.

The worker itself measures the need exactly when it loads the model. A host has to know it before it starts a worker.
"""

from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

from .model_files import walk_files

MIN_CONTEXT_TOKENS: Final = 1024
"""Context for which memory must suffice when a model is loaded, in tokens."""
_WEIGHT_SUFFIXES: Final = (".safetensors", ".npz")
_HALF_PRECISION: Final = ("bfloat16", "float16")
_ATTENTION_LAYERS: Final = ("full_attention", "sliding_attention", "chunked_attention")
"""Values of `layer_types` in a config.json for layers with keys and values. Other layers have a small state instead."""


def estimate_load_bytes(folder: Path, config: dict[str, Any]) -> int:
    """Return the memory that a load needs for the weights and a short answer, in bytes.

    Args:
        folder: The model folder.
        config: Its config.json.
    """
    try:
        files = [(path, status.st_size) for path, status in walk_files(folder) if path.parent == folder]
    except RequestError:
        return 0
    weights = [(path, size) for path, size in files if path.suffix in _WEIGHT_SUFFIXES]
    named = [(path, size) for path, size in weights if path.name.startswith("model")]  # mlx-lm reads these alone
    return sum(size for _, size in named or weights or files) + _answer_bytes(config)


def _answer_bytes(config: dict[str, Any]) -> int:
    """Return the size of the KV cache of a short answer, in bytes; 0 if the config does not show it.

    A sliding window counts as full attention, so the result may be too large. That only costs an idle model its place.
    """
    language = config.get("text_config")
    language = language if isinstance(language, dict) else config
    heads = _number(language, "num_attention_heads")
    layers, width = _number(language, "num_hidden_layers"), _number(language, "hidden_size")
    if isinstance(types := language.get("layer_types"), list):
        layers = sum(kind in _ATTENTION_LAYERS for kind in types)
    head_width = _number(language, "head_dim") or (width // heads if heads else 0)
    context = min(_number(language, "max_position_embeddings") or MIN_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS)
    keys = layers * (_number(language, "num_key_value_heads") or heads) * head_width * context
    return 2 * keys * _element_bytes(config, language)


def _element_bytes(*configs: dict[str, Any]) -> int:
    """Return the size of a number in the KV cache, in bytes. A config without a type may mean any type."""
    types = [config.get(name) for config in configs for name in ("dtype", "torch_dtype")]
    return 2 if any(kind in _HALF_PRECISION for kind in types) else 4


def _number(config: dict[str, Any], name: str) -> int:
    value = config.get(name)
    return value if type(value) is int and 0 < value < 2**53 else 0
