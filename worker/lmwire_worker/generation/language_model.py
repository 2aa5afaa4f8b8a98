"""A model's folder into memory, through mlx-lm."""

import sys
from pathlib import Path
from typing import Any, Final

from mlx import nn
from mlx_lm import utils
from mlx_lm.tokenizer_utils import TokenizerWrapper

from lmwire_protocol import RequestError

from ..engine.interface import ModelInfo
from ..models.remote_code import untrusted_code_error
from ..models.shared_weights import SharedWeights, list_files
from ..models.weights import quantization, summarize_exception, weights_bytes

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
    try:
        ends = utils.load_config(folder).get("eos_token_id")
        return utils.load_tokenizer(folder, {"trust_remote_code": trust_remote_code}, eos_token_ids=ends)
    except Exception as error:  # transformers raises whatever its tokenizers raise
        if "trust_remote_code" in str(error):
            raise untrusted_code_error(f"the tokenizer of {folder} brings its own code") from None
        raise RequestError(
            "bad_model", f"the tokenizer of {folder} does not load: {summarize_exception(error)}"
        ) from None


def open_shared_weights(folder: Path, *, trust_remote_code: bool) -> SharedWeights:
    """A model whose weights have sizes, and are not read yet.

    Raises:
        RequestError: bad_model.
    """
    files = list_files(folder)
    try:
        network, config = utils.load_model(folder, lazy=True, trust_remote_code=trust_remote_code)
    except Exception as error:  # mlx-lm's models raise whatever a wrong config leads to
        raise RequestError("bad_model", f"{folder} does not load: {summarize_exception(error)}") from None
    return SharedWeights(folder, files, network, config)


def describe(
    folder: Path, config: dict[str, Any], network: Any, tokenizer: TokenizerWrapper, adapter: Path | None = None
) -> ModelInfo:
    """What the protocol reports of a model."""
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
        capabilities=["generate", *(["chat"] if tokenizer.has_chat_template else []), "tokenize"],
        quantization=quantization(config),
        adapter_path=str(adapter) if adapter else None,
    )


def _table_rows(network: Any) -> int:
    """Return the rows of the largest table of embeddings. A token beyond it would be read from other memory."""
    tables = [part for part in network.modules() if isinstance(part, nn.Embedding | nn.QuantizedEmbedding)]
    return max((table.weight.shape[0] for table in tables), default=sys.maxsize)


def _first(configs: list[dict[str, Any]], fields: tuple[str, ...]) -> int | None:
    values = (config.get(field) for config in configs for field in fields)
    return next((value for value in values if isinstance(value, int) and value > 0), None)
