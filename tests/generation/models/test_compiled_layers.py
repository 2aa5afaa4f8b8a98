"""Compiled layers: the bits of the plain ones, with less to start. A trial decides whether they are used.

They are used on a GPU alone. Here the loader takes any device for one.
"""

import gc
import itertools
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx_lm.models import gemma2, gemma3_text, llama, olmo2, phi3, qwen2, qwen3
from mlx_lm.models.cache import BatchKVCache, KVCache, make_prompt_cache

from lmwire_protocol import Generate
from lmwire_worker.generation import loader
from lmwire_worker.models import compiled_layers
from lmwire_worker.models.compiled_layers import TRIAL_STEPS, TRIAL_TURNS, CompiledLayers, compile_if_faster
from lmwire_worker.models.fused_projections import fuse_projections
from random_model import write_model
from support.models.adapters import Host, write_adapter
from support.models.small_networks import small_network
from support.runners.generation_runners import EACH_FAMILY, FolderOf, ask, expected, open_runner

PROMPT = [5, 6, 7, 8, 9, 10]
NETWORKS: dict[str, Callable[[], Any]] = {
    "llama": lambda: small_network(llama),
    "biases": lambda: small_network(llama, attention_bias=True, mlp_bias=True),
    "qwen2": lambda: small_network(qwen2),
    "qwen3": lambda: small_network(qwen3, tie_word_embeddings=True),
    "phi3": lambda: small_network(phi3),
    "olmo2": lambda: small_network(olmo2),
    "gemma3_text": lambda: small_network(gemma3_text, num_hidden_layers=6, sliding_window_pattern=3, sliding_window=4),
}
UNLIKE = "gemma2"
"""An architecture that computes its attention itself."""


def build(name: str) -> Any:
    network = small_network(gemma2) if name == UNLIKE else NETWORKS[name]()
    mx.eval(network.parameters())
    return network


def decode(network: Any, cache: list[Any], rows: int) -> mx.array:
    """Return the logits of a prompt, of two tokens and of three more together, of several rows."""
    steps = (PROMPT, [11], [12], [13, 14, 15])
    outputs = [network(mx.array([tokens] * rows), cache=cache)[:, -1] for tokens in steps]
    return mx.stack(outputs)


def batched_cache(network: Any, rows: int) -> list[Any]:
    """Return empty caches of rows that have less and less padding."""
    padding = [*range(rows)]
    return [BatchKVCache(padding) if type(cache) is KVCache else cache for cache in make_prompt_cache(network)]


def compiled_shapes(network: Any) -> list[int]:
    """Return how many shapes each layer has compiled."""
    return [layer.halves.shapes for layer in network.layers]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", ["plain", "fused", "8-bit"])
def test_compiled_layers_give_the_same_bits(name: str, kind: str) -> None:
    network = build(name)
    if kind == "fused":
        fuse_projections(network)
    if kind == "8-bit":
        nn.quantize(network, group_size=32, bits=8)
    plain = [decode(network, make_prompt_cache(network), rows) for rows in (1, 3)]
    CompiledLayers(network, patience=0)
    compiled = [decode(network, make_prompt_cache(network), rows) for rows in (1, 3)]
    assert all(compiled_shapes(network))
    assert all(itertools.starmap(mx.array_equal, zip(plain, compiled, strict=True)))


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_so_they_do_for_rows_of_different_lengths(name: str) -> None:
    network = build(name)
    plain = decode(network, batched_cache(network, 3), 3)
    CompiledLayers(network, patience=0)
    assert mx.array_equal(decode(network, batched_cache(network, 3), 3), plain)
    assert all(compiled_shapes(network))


class Spaced:
    """A network that does something between its layers: it scales their inputs."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.layers = network.layers

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        x = self.network.model.embed_tokens(tokens)
        for layer, own in zip(self.layers, cache, strict=True):
            x = layer(x * 1.5, "causal" if tokens.shape[1] > 1 else None, own)
        return x


def count_first_halves(network: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives the index of each layer whose first half is computed by itself."""
    alone: list[int] = []
    for index, layer in enumerate(network.layers):
        compiled = layer.halves.compiled_before

        def run(*arrays: mx.array, index: int = index, compiled: Any = compiled) -> Any:
            alone.append(index)
            return compiled(*arrays)

        monkeypatch.setattr(layer.halves, "compiled_before", run)
    return alone


def test_a_layer_begins_the_one_that_takes_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    network = build("llama")
    CompiledLayers(network, patience=0)
    cache = make_prompt_cache(network)
    network(mx.array([[1]]), cache=cache)
    alone = count_first_halves(network, monkeypatch)
    network(mx.array([[2]]), cache=cache)
    assert alone == [0]


def test_it_does_not_where_something_stands_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    network = build("llama")
    spaced = Spaced(network)
    plain = decode(spaced, make_prompt_cache(network), 2)
    CompiledLayers(network, patience=0)
    assert mx.array_equal(decode(spaced, make_prompt_cache(network), 2), plain)
    alone = count_first_halves(network, monkeypatch)
    spaced(mx.array([[2]] * 2), make_prompt_cache(network))
    assert alone == [0, 1]
    assert not any(layer.halves.begun for layer in network.layers)


def test_a_shape_that_has_come_often_is_compiled_one_layer_in_each_step() -> None:
    network = build("llama")
    CompiledLayers(network, patience=3)
    cache = make_prompt_cache(network)
    counts: list[list[int]] = []
    for _ in range(6):
        network(mx.array([[1]]), cache=cache)
        counts.append(compiled_shapes(network))
    assert counts == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1], [1, 1]]
    network(mx.array([[1, 2]]), cache=cache)
    assert compiled_shapes(network) == [1, 1]


def test_long_chunks_of_prompts_stay_as_they_are() -> None:
    network = build("llama")
    CompiledLayers(network, patience=0)
    network(mx.array([[1] * (compiled_layers.MAX_TOKENS + 1)]), cache=make_prompt_cache(network))
    assert compiled_shapes(network) == [0, 0]


def test_an_architecture_with_an_attention_of_its_own_stays_as_it_is() -> None:
    network = build(UNLIKE)
    plain, attend = decode(network, make_prompt_cache(network), 2), mx.fast.scaled_dot_product_attention
    layers = CompiledLayers(network, patience=0)
    assert mx.array_equal(decode(network, make_prompt_cache(network), 2), plain)
    assert not layers.have_compiled
    layers.remove()
    assert mx.fast.scaled_dot_product_attention is attend
    assert not compile_if_faster(network)


def ticks(plain_ms: float, compiled_ms: float, *later: tuple[float, float]) -> Callable[[], float]:
    """Return a clock of one trial.

    Args:
        plain_ms: Duration of a step of the plain layers' first run, in milliseconds.
        compiled_ms: That of the compiled ones.
        later: Those in later turns, of the compiled layers and the plain ones; the same again if there are none.
    """
    later = later or ((compiled_ms, plain_ms),) * (TRIAL_TURNS if compiled_ms > plain_ms else 1)
    return clock_of([plain_ms, compiled_ms, 9, 9, *itertools.chain.from_iterable(later)])


def clock_of(runs: list[float]) -> Callable[[], float]:
    """Return a clock by which steps of runs take these times. Other programs delay all but one step of each run."""
    steps = (ms / 1000 + (0.1 if index != 1 else 0) for ms in runs for index in range(TRIAL_STEPS))
    times = itertools.accumulate(itertools.chain.from_iterable((0.0, step) for step in steps))
    return lambda: next(times)


@pytest.mark.parametrize(("plain_ms", "compiled_ms", "are_used"), [(8, 6, True), (8, 10, False)])
def test_a_trial_decides_whether_they_are_used(plain_ms: float, compiled_ms: float, are_used: bool) -> None:
    network = build("llama")
    classes = [type(layer) for layer in network.layers]
    assert compile_if_faster(network, ticks(plain_ms, compiled_ms)) == are_used
    assert ([type(layer) for layer in network.layers] == classes) == (not are_used)
    assert all(isinstance(layer, plain) for layer, plain in zip(network.layers, classes, strict=True))


@pytest.mark.parametrize(
    ("runs", "are_used"),
    [([1000, 8, 6, 9, 9, 6, 8], True), ([1000, 13], False)],
    ids=["a cold process", "a large model"],
)
def test_a_slow_first_run_is_repeated(runs: list[float], are_used: bool) -> None:
    clock = clock_of(runs)
    assert compile_if_faster(build("llama"), clock) == are_used
    with pytest.raises(StopIteration):
        clock()


@pytest.mark.parametrize(
    ("later", "are_used"),
    [
        ([(6.0, 8.2)], True),
        ([(8.4, 8.2), (6.0, 8.2)], True),
        ([(8.2, 8.0)] * 4 + [(7.8, 8.0)], True),
        ([(8.2, 8.0)] * 5, False),
        ([(18.0, 8.0)] * 3 + [(6.0, 8.0)], True),
        ([(18.0, 8.0)] * 5, False),
    ],
    ids=["a clear lead", "a delayed turn", "a close race", "a lost one", "delayed turns", "a clear loss"],
)
def test_a_trial_ends_early_only_with_a_clear_lead_of_the_compiled_layers(
    later: list[tuple[float, float]], are_used: bool
) -> None:
    clock = ticks(8.0, 8.4, *later)
    assert compile_if_faster(build("llama"), clock) == are_used
    with pytest.raises(StopIteration):  # it takes no more turns, and no fewer
        clock()


class Counting(llama.TransformerBlock):
    """A layer whose output depends on how often it was called, which no compiled function does."""

    calls = 0

    def __call__(self, x: mx.array, mask: Any = None, cache: Any = None) -> mx.array:
        self.calls += 1
        return (1 + self.calls / 100) * super().__call__(x, mask, cache)


def test_they_are_not_used_where_a_bit_differs() -> None:
    network = build("llama")
    for layer in network.layers:
        layer.__class__ = Counting
    assert not compile_if_faster(network, ticks(0.04, 0.02))
    assert {type(layer) for layer in network.layers} == {Counting}


def test_a_network_leaves_the_memory_with_its_last_name() -> None:
    network = build("llama")
    layers = CompiledLayers(network, patience=0)
    mx.eval(decode(network, make_prompt_cache(network), 2))
    weight = weakref.ref(network.layers[0].mlp)
    gc.disable()
    try:
        del network
        assert weight() is None
    finally:
        gc.enable()
    layers.remove()


@pytest.fixture
def compiled_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each load compile what it can."""
    monkeypatch.setattr(loader, "_may_compile_layers", lambda: True)
    monkeypatch.setattr(compiled_layers, "PATIENCE", 1)
    monkeypatch.setattr(
        compiled_layers, "compile_if_faster", lambda network: compile_if_faster(network, ticks(0.04, 0.02))
    )


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loads")
@pytest.mark.parametrize("family", EACH_FAMILY)
def test_a_loaded_model_answers_as_mlx_lm_does(family: str, folder_of: FolderOf) -> None:
    runner = open_runner(folder_of(family))
    requests = [Generate(prompt=[5 + row, 6, 7, 9][: 2 + row % 3], max_tokens=12) for row in range(4)]
    for request, answer in zip(requests, ask(runner, *requests), strict=True):
        assert answer.token_ids == expected(folder_of(family), request).token_ids


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loads")
@pytest.mark.parametrize("option", ["draft_path", "kv_bits"])
def test_so_it_does_with_a_draft_or_a_quantized_cache(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "wide", head_dim=32)
    options: dict[str, Any] = {"draft_path": str(folder)} if option == "draft_path" else {"kv_bits": 8}
    requests = [Generate(prompt=PROMPT[row:], max_tokens=12) for row in range(3)]
    compiled = ask(open_runner(folder, **options), *requests)
    monkeypatch.setattr(loader, "_may_compile_layers", lambda: False)
    assert compiled == ask(open_runner(folder, **options), *requests)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loads")
def test_an_adapter_is_a_part_of_what_is_compiled(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = folder_of("llama")
    adapter = write_adapter(tmp_path / "adapter", model)
    host = Host()
    answers = [ask(host.load(model, which), Generate(prompt=PROMPT, max_tokens=12))[0] for which in (adapter, None)]
    assert answers[0].token_ids != answers[1].token_ids
    monkeypatch.setattr(loader, "_may_compile_layers", lambda: False)
    host = Host()
    for which, compiled in zip((adapter, None), answers, strict=True):
        assert ask(host.load(model, which), Generate(prompt=PROMPT, max_tokens=12))[0].token_ids == compiled.token_ids
