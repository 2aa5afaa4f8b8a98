"""Describe a model: what the protocol reports of it."""

import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from mlx import nn
from msgspec.structs import replace

from lmwire_protocol import Generate, RequestError
from lmwire_protocol.events import SamplingDefaults

from ..engine.interface import ModelInfo
from .model_files import GENERATION_CONFIG, read_json, shown
from .tokenizer import Tokenizer
from .weights import quantization, weights_bytes

CONTEXT_FIELDS: Final = (
    "max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx",
    "model_max_length",
)  # fmt: skip
HIDDEN_FIELDS: Final = ("hidden_size", "d_model", "n_embd", "model_dim", "dim")
UNBOUNDED_CONTEXT: Final = 2**20
"""Context length of a recurrent model, whose memory has a constant size."""


def describe_model(
    folder: Path, config: dict[str, Any], network: Any, tokenizer: Tokenizer, adapter: Path | None = None
) -> ModelInfo:
    """Return what the protocol reports of a model.

    Args:
        folder: The model's folder.
        config: Its config.json.
        network: The model; its weights may still be missing.
        tokenizer: Its tokenizer.
        adapter: The folder of its adapter, if it has one.
    """
    text_config = config.get("text_config")
    configs = [config, text_config] if isinstance(text_config, dict) else [config]
    context = _first(configs, CONTEXT_FIELDS)
    if context is None:
        claimed = tokenizer.model_max_length
        context = claimed if isinstance(claimed, int) and 0 < claimed < 10**9 else UNBOUNDED_CONTEXT
    return ModelInfo(
        path=str(folder),
        model_type=config["model_type"],
        vocab_size=min(_first(configs, ("vocab_size",)) or len(tokenizer), _table_rows(network)),
        layers=len(getattr(network, "layers", ())),
        hidden_size=_first(configs, HIDDEN_FIELDS) or 0,
        context_len=context,
        weights_bytes=weights_bytes(network),
        capabilities=["generate", "chat", "tokenize"],
        quantization=quantization(config),
        adapter_path=str(adapter) if adapter else None,
        tokenizer_vocab_size=tokenizer.base_vocab_size,
    )


def _table_rows(network: Any) -> int:
    """Return the rows of the largest table of embeddings. A token beyond it would be read from other memory."""
    tables = [part for part in network.modules() if isinstance(part, nn.Embedding | nn.QuantizedEmbedding)]
    return max((table.weight.shape[0] for table in tables), default=sys.maxsize)


def _first(configs: list[dict[str, Any]], fields: tuple[str, ...]) -> int | None:
    values = (config.get(field) for config in configs for field in fields)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def limit_context(model: ModelInfo, length: int | None) -> ModelInfo:
    """Return the model with a shorter context.

    Args:
        model: The model.
        length: Tokens of the context; None for the model's own length.

    Raises:
        RequestError: invalid_request, if the model's context is shorter.
    """
    if length is None:
        return model
    if length > model.context_len:
        problem = f"context_len: must be 1 to {model.context_len}, which is what this model's context holds"
        raise RequestError("invalid_request", problem, field="context_len")
    return replace(model, context_len=length)


# The sampling defaults in a model's generation_config.json.


def read_sampling_defaults(folder: Path) -> SamplingDefaults | None:
    """Return a model's sampling defaults; None if it has none.

    A value that a request could not have is ignored, and stderr reports it: a file of the model refuses no load.
    `do_sample` is read as Hugging Face defines it: false means greedy, and true without a temperature means 1.
    """
    path = folder / GENERATION_CONFIG
    if not path.exists():
        return None
    try:
        config = read_json(path)
    except (RequestError, OSError) as error:
        _warn(f"{path} is ignored: {error}")
        return None
    values = {name: config[name] for name in SamplingDefaults.__struct_fields__ if config.get(name) is not None}
    values = {name: value for name, value in values.items() if _is_valid(path, name, value)}
    if config.get("do_sample") is False:
        values["temperature"] = 0.0
    elif config.get("do_sample") is True:
        values.setdefault("temperature", 1.0)
    return SamplingDefaults(**values) if values else None


def _is_valid(path: Path, name: str, value: Any) -> bool:
    """Return whether a request could have a value, by the bounds of the protocol."""
    try:
        msgspec.convert({"prompt": "", name: value}, Generate)
    except (msgspec.ValidationError, UnicodeError):  # the latter for half a surrogate pair
        _warn(f"{path}: {name} is ignored, because a request cannot have {shown(value)}")
        return False
    return True


def _warn(problem: str) -> None:
    print(f"lmwire: {problem}", file=sys.stderr)
