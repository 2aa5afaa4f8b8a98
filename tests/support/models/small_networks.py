"""Networks of mlx-lm's architectures, small and with random weights, for tests below the worker."""

from importlib import import_module
from typing import Any, Final

import mlx.core as mx
from mlx.utils import tree_map_with_path

_FIELDS: Final[dict[str, Any]] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e4,
    "max_position_embeddings": 512,
}


def small_network(module: Any, **fields: Any) -> Any:
    """Return a network of an architecture with random weights.

    Args:
        module: The architecture's module.
        fields: Fields of its config.json, beside the usual ones.
    """
    model_type = module.__name__.rpartition(".")[2]
    return module.Model(module.ModelArgs.from_dict(_FIELDS | {"model_type": model_type} | fields))


# Networks that keep more than plain keys and values: the newest tokens only, or a state.

_STATE_SPACE: Final[dict[str, Any]] = {
    "n_groups": 1,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "time_step_limit": (0.0, 100.0),
}
_SPECIAL: Final[dict[str, dict[str, Any]]] = {
    "falcon_h1": {
        "mamba_d_ssm": 64,
        "mamba_n_heads": 4,
        "mamba_d_head": 16,
        "mamba_d_state": 16,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 1,
        "mamba_chunk_size": 32,
    },
    "gemma3_text": {"sliding_window": 8, "sliding_window_pattern": 2},
    "gpt_oss": {
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 8,
        "rope_scaling": None,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "mamba": {
        "state_size": 16,
        "conv_kernel": 4,
        "use_bias": False,
        "use_conv_bias": True,
        "time_step_rank": 4,
        "intermediate_size": 128,
    },
    "mamba2": _STATE_SPACE
    | {
        "num_heads": 8,
        "head_dim": 16,
        "state_size": 16,
        "expand": 2,
        "chunk_size": 32,
        "tie_word_embeddings": True,
        "time_step_rank": 4,
        "layer_norm_epsilon": 1e-5,
    },
    "nemotron_h": _STATE_SPACE
    | {
        "num_hidden_layers": 4,
        "hybrid_override_pattern": "M*M-",
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "ssm_state_size": 16,
        "chunk_size": 32,
        "mlp_bias": False,
        "attention_bias": False,
        "mamba_proj_bias": False,
        "layer_norm_epsilon": 1e-5,
        "residual_in_fp32": False,
        "rescale_prenorm_residual": False,
        "time_step_floor": 0.0,
        "time_step_min": 0.0,
        "time_step_max": 1.0,
    },
    "qwen3_next": {
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "shared_expert_intermediate_size": 64,
        "moe_intermediate_size": 64,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "partial_rotary_factor": 0.25,
        "full_attention_interval": 2,
    },
    "recurrent_gemma": {
        "num_hidden_layers": 3,
        "attention_bias": False,
        "conv1d_width": 4,
        "lru_width": 64,
        "attention_window_size": 8,
        "logits_soft_cap": 30.0,
        "embeddings_scale_by_sqrt_dim": True,
        "block_types": ["recurrent", "recurrent", "attention"],
    },
}


def special_network(model_type: str) -> Any:
    """Return a network that keeps a window or a state. Weights that architectures begin with 0 are random too."""
    mx.random.seed(0)
    network = small_network(import_module(f"mlx_lm.models.{model_type}"), **_SPECIAL[model_type])

    def draw(path: str, weight: mx.array) -> mx.array:
        if "A_log" in path or path.endswith(".A"):
            return weight
        if weight.ndim == 1 or "conv" in path:
            return weight + 0.3 * mx.random.normal(weight.shape)
        return mx.random.normal(weight.shape) / weight.shape[-1] ** 0.5

    network.update(tree_map_with_path(draw, network.parameters()))
    return network
