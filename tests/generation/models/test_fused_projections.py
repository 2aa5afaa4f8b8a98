"""Fused projections: the answers, the parameters and the memory of the plain layers, with fewer multiplications.

They are used on CUDA alone. Here the loader takes them for faster.
"""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models import deepseek_v3, llama, qwen3
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import Generate
from lmwire_worker.generation import loader
from lmwire_worker.models.fused_projections import fuse_projections
from lmwire_worker.models.weights import SharedWeights
from support.models.adapters import Host, write_adapter
from support.models.small_networks import small_network
from support.runners.generation_runners import EACH_FAMILY, FolderOf, ask, expected, open_runner

PROMPT = [5, 6, 7, 8, 9, 10]


NETWORKS: dict[str, tuple[Callable[[], Any], int]] = {
    "llama": (lambda: small_network(llama), 2 * 3),
    "biases": (lambda: small_network(llama, attention_bias=True, mlp_bias=True), 2 * 3),
    "qwen3": (lambda: small_network(qwen3, tie_word_embeddings=True), 2 * 3),
}
"""Networks, and how many multiplications the fused ones need less."""


def multiplications(network: Any, tmp_path: Path) -> int:
    mx.export_to_dot(str(tmp_path / "graph.dot"), network(mx.array([PROMPT])))
    text = (tmp_path / "graph.dot").read_text()
    return sum(text.count(f'label ="{name}"') for name in ("Matmul", "AddMM", "QuantizedMatmul"))


def decode(network: Any, rows: int) -> mx.array:
    """Return the logits after a prompt and two steps, of several rows."""
    cache = make_prompt_cache(network)
    outputs = [network(mx.array([tokens] * rows), cache=cache)[:, -1] for tokens in (PROMPT, [11], [12])]
    return mx.stack(outputs)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("bits", [None, 8, 4], ids=lambda bits: f"{bits}-bit" if bits else "plain")
def test_fused_layers_compute_the_same_with_fewer_multiplications(name: str, bits: int | None, tmp_path: Path) -> None:
    build, saved = NETWORKS[name]
    network = build()
    if bits:
        nn.quantize(network, group_size=32, bits=bits)
    before = multiplications(network, tmp_path)
    plain = [decode(network, rows) for rows in (1, 3)]
    names = [(key, value.shape) for key, value in leaves(network)]
    fuse_projections(network)
    assert multiplications(network, tmp_path) == before - saved
    for rows, expected_logits in zip((1, 3), plain, strict=True):
        assert mx.allclose(decode(network, rows), expected_logits, atol=1e-4)
    assert [(key, value.shape) for key, value in leaves(network)] == names


def leaves(network: Any) -> list[tuple[str, mx.array]]:
    found: Any = tree_flatten(network.parameters())
    return found


def test_latent_attention_is_fused_too(tmp_path: Path) -> None:
    latent = small_network(
        deepseek_v3,
        **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
        **{"n_routed_experts": None, "first_k_dense_replace": 9, "num_key_value_heads": 4, "rope_scaling": None},
    )
    before, plain = multiplications(latent, tmp_path), decode(latent, 2)
    fuse_projections(latent)
    assert multiplications(latent, tmp_path) == before - 2 * 2, "a pair of the attention, and gate and up"
    assert mx.allclose(decode(latent, 2), plain, atol=1e-4)


class Crossing(nn.Module):
    """Attention whose keys come from elsewhere, so that its layers read two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(8, 8), nn.Linear(8, 8)

    def __call__(self, one: mx.array, other: mx.array) -> mx.array:
        return self.q_proj(one) + self.k_proj(other)


def test_layers_that_read_different_inputs_work_alone(tmp_path: Path) -> None:
    module = Crossing()
    one, other = mx.ones((1, 8)), mx.arange(8.0)[None]
    plain = module(one, other)
    fuse_projections(module)
    for _ in range(2):
        assert mx.allclose(module(one, other), plain, atol=1e-6)
    assert mx.allclose(module(one, one), module.k_proj(one) + module.q_proj(one), atol=1e-6)


class Deaf(nn.Module):
    """A module that never calls one of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(8, 8), nn.Linear(8, 8)

    def __call__(self, x: mx.array) -> mx.array:
        return self.gate_proj(x)


def test_an_output_that_nobody_takes_is_not_kept() -> None:
    module = Deaf()
    fuse_projections(module)
    x = mx.random.normal((1, 8))
    kept = weakref.ref(x)
    plain = x @ module.gate_proj.weight.T + module.gate_proj.bias
    assert mx.allclose(module(x), plain, atol=1e-6)
    del x, plain
    assert mx.allclose(module(mx.zeros((1, 8))), module.gate_proj.bias, atol=1e-6)
    gc.collect()
    assert kept() is None


def test_nothing_of_a_prompt_is_kept() -> None:
    network = small_network(llama)
    fuse_projections(network)
    mx.eval(network.parameters(), network(mx.array([PROMPT])))
    before = mx.get_active_memory()
    mx.eval(network(mx.array([PROMPT * 50])))
    assert mx.get_active_memory() == before


def test_layers_of_different_kinds_stay_as_they_are() -> None:
    network = small_network(llama)
    first, second = network.layers
    first.self_attn.v_proj = first.self_attn.v_proj.to_quantized(32, 4)
    first.mlp.up_proj = nn.Linear(64, 96, bias=True)
    second.self_attn.k_proj = nn.Linear(64, 32, bias=False).apply(lambda weight: weight.astype(mx.float16))
    kinds = [type(layer) for layer in linear(network)]
    fuse_projections(network)
    changed = [type(layer) for layer in linear(network)]
    assert changed[:7] == kinds[:7], "another quantization, another bias"
    assert changed[7:10] == kinds[7:10], "another type of numbers"
    assert all(one is not other for one, other in zip(changed[11:13], kinds[11:13], strict=True)), "gate and up"


def linear(network: Any) -> list[nn.Module]:
    attention, gated = ("q_proj", "k_proj", "v_proj", "o_proj"), ("gate_proj", "up_proj", "down_proj")
    return [
        module[name]
        for layer in network.layers
        for module, names in ((layer.self_attn, attention), (layer.mlp, gated))
        for name in names
    ]


@pytest.fixture
def fused_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "fusing_is_faster", lambda: True)


@pytest.mark.slow
@pytest.mark.usefixtures("fused_loads")
@pytest.mark.parametrize("family", EACH_FAMILY)
def test_a_model_that_is_loaded_fused_answers_as_mlx_lm_does(family: str, folder_of: FolderOf) -> None:
    runner = open_runner(folder_of(family))
    requests = [Generate(prompt=[5 + row, 6, 7, 9][: 2 + row % 3], max_tokens=12) for row in range(4)]
    for request, answer in zip(requests, ask(runner, *requests), strict=True):
        assert answer.token_ids == expected(folder_of(family), request).token_ids


@pytest.mark.slow
@pytest.mark.usefixtures("fused_loads")
def test_the_weights_are_in_memory_once(folder_of: FolderOf) -> None:
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    runner = open_runner(folder_of("llama"))
    gc.collect()
    mx.clear_cache()
    taken = mx.get_active_memory() - before
    assert runner.model.weights_bytes <= taken <= 1.05 * runner.model.weights_bytes


@pytest.mark.slow
@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
def test_an_adapter_on_fused_layers_answers_as_on_plain_ones(
    dora: bool, folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = folder_of("llama")
    adapter = write_adapter(tmp_path / "adapter", model, dora=dora)
    plain = ask(Host().load(model, adapter), Generate(prompt=PROMPT, max_tokens=12))[0]
    monkeypatch.setattr(loader, "fusing_is_faster", lambda: True)
    fused = ask(Host().load(model, adapter), Generate(prompt=PROMPT, max_tokens=12))[0]
    assert fused.token_ids == plain.token_ids
    assert plain.token_ids != ask(Host().load(model), Generate(prompt=PROMPT, max_tokens=12))[0].token_ids


def test_copies_of_shared_weights_stay_fused(tmp_path: Path) -> None:
    shared = SharedWeights(tmp_path, [], small_network(llama), {})
    fuse_projections(shared.modules())
    one, other = shared.new_network(), shared.new_network()
    saved = multiplications(one, tmp_path)
    assert multiplications(other, tmp_path) == saved == multiplications(shared.modules(), tmp_path)
    assert mx.allclose(decode(one, 2), decode(other, 2))
