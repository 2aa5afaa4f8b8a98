"""Write tiny embedding models with random weights, in the layout of sentence-transformers."""

import importlib
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten

import random_model

MODULES = ("Transformer", "Pooling", "Normalize")
_SHAPE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "vocab_size": 512,
}
_DECODER = {
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
    "tie_word_embeddings": True,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": _SHAPE | {"architectures": ["BertModel"]},
    "xlm-roberta": _SHAPE | {"architectures": ["XLMRobertaModel"], "type_vocab_size": 1, "pad_token_id": 1},
    "modernbert": _SHAPE | {"architectures": ["ModernBertModel"], "local_attention": 16},
    "qwen3": _SHAPE | _DECODER | {"architectures": ["Qwen3ForCausalLM"]},
}
_MODULES = {"xlm-roberta": "xlm_roberta", "qwen3": "qwen3_embedding"}


def write_embedding_model(
    folder: Path,
    family: str = "bert",
    *,
    modules: tuple[str, ...] = MODULES,
    pooling: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    text: dict[str, Any] | None = None,
    **overrides: Any,
) -> Path:
    """Write a model, and return its folder.

    Args:
        folder: Where to write.
        family: One of `FAMILIES`.
        modules: What modules.json lists; without any there is no such file.
        pooling: 1_Pooling/config.json; the mean when None.
        settings: config_sentence_transformers.json; none when None.
        text: sentence_bert_config.json; none when None.
        **overrides: Fields of config.json.
    """
    folder.mkdir(parents=True)
    random_model.write_tokenizer(folder, 512)
    config = {"model_type": family, **FAMILIES[family], **overrides}
    (folder / "config.json").write_text(json.dumps(config))
    _write_weights(folder, config, _MODULES.get(family, family))
    if modules:
        listed = [
            {"idx": at, "name": str(at), "path": f"{at}_{name}", "type": f"sentence_transformers.models.{name}"}
            for at, name in enumerate(modules)
        ]
        (folder / "modules.json").write_text(json.dumps(listed))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling or {"pooling_mode_mean_tokens": True}))
    for name, content in (("config_sentence_transformers", settings), ("sentence_bert_config", text)):
        if content is not None:
            (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def _write_weights(folder: Path, config: dict[str, Any], module: str) -> None:
    architecture = importlib.import_module(f"mlx_vlm.models.{module}")
    mx.random.seed(0)
    model = architecture.Model(architecture.ModelConfig.from_dict({**config, "model_type": module}))
    parameters: Any = tree_flatten(model.parameters())
    weights = {
        name: mx.random.normal(value.shape) * (2 / value.shape[-1] ** 0.5) if value.ndim > 1 else value
        for name, value in parameters
    }
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
