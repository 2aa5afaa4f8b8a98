from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import random_model
from random_model import FAMILIES, write_model

EXPERTS: Final[dict[str, Any]] = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 64,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}

MORE_LAYERS: Final[dict[str, dict[str, Any]]] = {
    "qwen2": {"num_hidden_layers": 3},
    "qwen3_next": {"num_hidden_layers": 4, "full_attention_interval": 2},
}
"""One layer of each kind for each rank of a pipeline."""


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tiny model of a family, in float32, where sums in another order seldom change a token."""
    root = tmp_path_factory.mktemp("models")
    random_model.FAMILIES.setdefault("qwen3_moe", FAMILIES["llama"] | EXPERTS)
    random_model.FAMILIES.setdefault("qwen2", FAMILIES["llama"] | {"architectures": ["Qwen2ForCausalLM"]})

    def write(family: str) -> Path:
        options = MORE_LAYERS.get(family, {})
        return write_model(root / family, family, end_scale=1.0, num_key_value_heads=4, **options)

    return write
