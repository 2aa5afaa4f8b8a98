"""Networks of mlx-lm's architectures, small and with random weights, for tests below the worker."""

from typing import Any, Final

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
