"""Prompts are computed together if a model ignores padding, however it rounds."""

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_map_with_path
from mlx_lm.models import qwen3

from lmwire_worker.generation.batching import supports_padding
from support.models.small_networks import small_network

pytestmark = pytest.mark.slow

FEW_TOKENS = 8
HALF_UNIT = 1 + 2**-9
"""A factor of half a unit in the last place of bfloat16."""


@pytest.fixture
def deep_network() -> nn.Module:
    """One of 28 layers in bfloat16, with weights wide enough that rounding grows from layer to layer."""
    mx.random.seed(0)
    network = small_network(qwen3, num_hidden_layers=28, vocab_size=8192, tie_word_embeddings=True)
    network.update(tree_map_with_path(lambda _, value: 3 * value if value.ndim > 1 else value, network.parameters()))
    network.set_dtype(mx.bfloat16)
    return network


def test_a_model_that_rounds_few_tokens_otherwise_still_ignores_padding(
    deep_network: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nn.Linear.__call__

    def round_few(self: nn.Linear, x: mx.array) -> mx.array:
        if x.size > FEW_TOKENS * x.shape[-1]:
            return plain(self, x)
        return (HALF_UNIT * (x.astype(mx.float32) @ self["weight"].T.astype(mx.float32))).astype(x.dtype)

    monkeypatch.setattr(nn.Linear, "__call__", round_few)
    assert supports_padding(deep_network)


def test_a_model_that_sees_padding_does_not_ignore_it(deep_network: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = mx.fast.scaled_dot_product_attention

    def attend_to_all(*arrays: mx.array, scale: float, **_: object) -> mx.array:
        return attend(*arrays, scale=scale)

    monkeypatch.setattr(mx.fast, "scaled_dot_product_attention", attend_to_all)
    assert not supports_padding(deep_network)
