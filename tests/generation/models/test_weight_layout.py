"""Weights that are stored transposed on a Linux CPU: the same numbers, at a layout that its BLAS reads faster."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models import deepseek_v3, llama, qwen3, qwen3_moe

from lmwire_worker.models.weights import read_weights, store_transposed
from support.models.small_networks import small_network

MIXED = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "tie_word_embeddings": False,
}


NETWORKS: dict[str, Callable[[], Any]] = {
    "llama": lambda: small_network(llama),
    "tied embeddings": lambda: small_network(qwen3, tie_word_embeddings=True),
    "experts": lambda: small_network(qwen3_moe, **MIXED),
    "latent attention": lambda: small_network(
        deepseek_v3, q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16
    ),
}


def strides(weight: mx.array) -> tuple[int, ...]:
    """Return the strides of an array, in items."""
    found = memoryview(weight).strides  # pyright: ignore[reportArgumentType]
    assert found is not None
    return tuple(stride // weight.itemsize for stride in found)


@pytest.mark.parametrize("build", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("tokens", [1, 9])
def test_a_network_gives_the_same_logits(build: Callable[[], Any], tokens: int) -> None:
    network = build()
    prompt = mx.random.randint(0, 100, (2, tokens))
    before = network(prompt)
    mx.eval(before)
    store_transposed(network)
    assert mx.array_equal(network(prompt), before)


def test_names_shapes_and_numbers_stay() -> None:
    network = small_network(qwen3_moe, **MIXED)
    before = dict(tree_flatten(network.parameters()))
    store_transposed(network)
    after = dict(tree_flatten(network.parameters()))
    assert {name: weight.shape for name, weight in after.items()} == {name: w.shape for name, w in before.items()}
    assert all(mx.array_equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.float16], ids=str)
def test_weights_in_float32_are_stored_transposed(dtype: mx.Dtype) -> None:
    layer = nn.Linear(3, 5, bias=False)
    layer.set_dtype(dtype)
    store_transposed(layer)
    mx.eval(layer.parameters())
    if dtype == mx.float32:
        assert strides(layer.weight) == (1, 5)
    elif dtype == mx.float16:  # Python's buffers lack bfloat16
        assert strides(layer.weight) == (3, 1)


def test_quantized_weights_keep_their_layout() -> None:
    layer = nn.QuantizedLinear(64, 32)
    before = layer.weight
    store_transposed(layer)
    assert layer.weight is before


@pytest.mark.skipif(mx.default_device() != mx.cpu, reason="a GPU reads many weights at once")
def test_few_weights_are_read_before_their_copies_are_made() -> None:
    """The next ones take the memory that the copies make free."""
    network = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(4)))
    store_transposed(network)
    read: list[int] = []
    read_weights(network, Path(), lambda _stage, current, *_: read.append(current))
    assert {after - before for before, after in pairwise(read)} == {0, 4 * 2**20}
