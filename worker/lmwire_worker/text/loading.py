"""A model's folder into memory, through mlx-lm."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm import utils
from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import RequestError
from lmwire_protocol.events import Quantization

from ..lane import Model, Report
from .base import Base, list_files

GROUP_BYTES: Final = 256 * 2**20
"""Weights read between two reports, and so how soon a cancel lands."""
CONTEXT_FIELDS: Final = (
    "max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx",
    "model_max_length",
)  # fmt: skip
HIDDEN_FIELDS: Final = ("hidden_size", "d_model", "n_embd", "model_dim", "dim")
UNBOUNDED_CONTEXT: Final = 2**20
"""For a recurrent model, whose memory has no length."""


def check_architecture(config: dict[str, Any]) -> None:
    """Raises unsupported when mlx-lm does not know the model's architecture. Reads no weights."""
    if config.get("model_file") is not None:
        return
    try:
        utils._get_classes(config=config)
    except (ValueError, AttributeError, TypeError):  # some modules beside the models are no models
        problem = f"this worker's mlx-lm has no architecture `{config['model_type']}`; a newer mlx-lm may have it"
        raise RequestError("unsupported", problem) from None


def load_tokenizer(folder: Path, config: dict[str, Any], *, trust_remote_code: bool) -> TokenizerWrapper:
    """Raises bad_model when the tokenizer's files are damaged."""
    ends = utils.load_config(folder).get("eos_token_id")
    try:
        return utils.load_tokenizer(folder, {"trust_remote_code": trust_remote_code}, eos_token_ids=ends)
    except Exception as error:  # transformers raises whatever its tokenizers raise
        if "trust_remote_code" in str(error):
            problem = f"the tokenizer of {folder} brings its own code, which runs only when trusted"
            raise RequestError("unsupported", f"{problem}; read it, and then load with trust_remote_code") from None
        raise RequestError("bad_model", f"the tokenizer of {folder} does not load: {sentence(error)}") from None


def open_base(folder: Path, *, trust_remote_code: bool) -> Base:
    """A model whose weights have sizes, and are not read yet.

    Raises:
        RequestError: bad_model.
    """
    files = list_files(folder)
    try:
        network, config = utils.load_model(folder, lazy=True, trust_remote_code=trust_remote_code)
    except Exception as error:  # mlx-lm's models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {sentence(error)}") from None
    return Base(folder, files, network, config)


def read_weights(network: nn.Module, folder: Path, report: Report, held: nn.Module | None = None) -> None:
    """Reads a network's weights into memory, but for those that it shares with `held`.

    Raises:
        RequestError: bad_model.
        LoadCancelled: from `report`.
    """
    mx.eval(mx.random.state)  # modules drew their first weights, and a state that is not evaluated keeps every draw
    there = set() if held is None else {id(weight) for weight in _weights(held)}
    weights = [weight for weight in _weights(network) if id(weight) not in there]
    total = sum(weight.nbytes for weight in weights)
    done = 0
    for group in _groups(weights):
        report("read", done, total, "bytes")
        try:
            mx.eval(group)
        except Exception as error:
            raise RequestError("bad_model", f"the weights of {folder} cannot be read: {sentence(error)}") from None
        done += sum(weight.nbytes for weight in group)
        report("read", done, total, "bytes")


def weights_bytes(network: nn.Module) -> int:
    """The size of a model's weights in memory."""
    return sum(weight.nbytes for weight in _weights(network))


def describe(
    folder: Path, config: dict[str, Any], network: Any, tokenizer: TokenizerWrapper, adapter: Path | None = None
) -> Model:
    """What the protocol reports of a model."""
    text_config = config.get("text_config")
    configs = [config, text_config] if isinstance(text_config, dict) else [config]
    context = _first(configs, CONTEXT_FIELDS)
    if context is None:
        claimed = tokenizer.model_max_length
        context = claimed if isinstance(claimed, int) and 0 < claimed < 10**9 else UNBOUNDED_CONTEXT
    return Model(
        path=str(folder),
        model_type=config["model_type"],
        vocab_size=_first(configs, ("vocab_size",)) or len(tokenizer),
        layers=len(getattr(network, "layers", ())),
        hidden_size=_first(configs, HIDDEN_FIELDS) or 0,
        context_len=context,
        weights_bytes=weights_bytes(network),
        capabilities=["generate", *(["chat"] if tokenizer.has_chat_template else []), "tokenize"],
        quantization=quantization(config),
        adapter_path=str(adapter) if adapter else None,
    )


def quantization(config: dict[str, Any]) -> Quantization | None:
    """How a config says that weights are quantised; None for not at all."""
    settings = config.get("quantization") or {}
    bits, group_size = settings.get("bits"), settings.get("group_size")
    return Quantization(bits, group_size) if isinstance(bits, int) and isinstance(group_size, int) else None


def _first(configs: list[dict[str, Any]], fields: tuple[str, ...]) -> int | None:
    values = (config.get(field) for config in configs for field in fields)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _weights(network: nn.Module) -> list[mx.array]:
    leaves: Any = tree_flatten(network.parameters())
    return [weight for _, weight in leaves]


def _groups(weights: list[mx.array]) -> Iterator[list[mx.array]]:
    group: list[mx.array] = []
    size = 0
    for weight in weights:
        group.append(weight)
        size += weight.nbytes
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def sentence(error: Exception) -> str:
    """An exception in short: the missing names of a whole model can fill pages."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}{' …' if len(text) > 300 else ''}"
