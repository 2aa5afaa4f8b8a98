"""The CUDA kernel for linear layers of few tokens, against MLX in float32: on a GPU, and its source on a CPU."""

from itertools import product

import mlx.core as mx
import pytest
from mlx import nn

from lmwire_worker.models.skinny_product import (
    MAX_TOKENS,
    MAX_WEIGHTS,
    multiply,
    replace_linear,
    suits_kernel,
)

needs_cuda = pytest.mark.skipif(not mx.cuda.is_available(), reason="the kernel runs on CUDA only")
SHAPES = [(17, 32), (1000, 96), (1024, 2048), (6144, 1024), (8200, 160)]
"""Outputs and inputs."""
TOKENS = [(2,), (1, 3), (8, 1), (3, 3), (31, 1), (1, 32)]
"""The sizes of an input, without its last one."""
TOLERANCES = {mx.bfloat16: 5e-3, mx.float16: 1e-3}
"""Maximum error of the largest output."""


def assert_exact(dtype: mx.Dtype, tokens: tuple[int, ...], outputs: int, inputs: int, *, is_biased: bool) -> None:
    """Check a product of random numbers."""
    x = mx.random.normal((*tokens, inputs)).astype(dtype)
    weight = mx.random.normal((outputs, inputs)).astype(dtype)
    bias = mx.random.normal((outputs,)).astype(dtype) if is_biased else None
    found = multiply(x, weight, bias)
    exact = x.astype(mx.float32) @ weight.astype(mx.float32).T + (0 if bias is None else bias)
    assert found.dtype == dtype
    assert found.shape == (*tokens, outputs)
    assert (abs(found - exact).max() <= TOLERANCES[dtype] * abs(exact).max()).item()


@needs_cuda
@pytest.mark.parametrize("is_biased", [False, True], ids=["", "biased"])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_it_is_as_exact_as_its_type(dtype: mx.Dtype, is_biased: bool) -> None:
    for (outputs, inputs), tokens in product(SHAPES, TOKENS):
        assert_exact(dtype, tokens, outputs, inputs, is_biased=is_biased)


@pytest.mark.slow
@pytest.mark.parametrize("is_biased", [False, True], ids=["", "biased"])
@pytest.mark.parametrize("tokens", TOKENS, ids=str)
def test_its_source_is_right_on_a_cpu(tokens: tuple[int, ...], is_biased: bool, emulated_kernels: None) -> None:
    for outputs, inputs in ((17, 32), (100, 320)):
        assert_exact(mx.float16, tokens, outputs, inputs, is_biased=is_biased)


@needs_cuda
def test_a_token_does_not_depend_on_its_neighbours() -> None:
    x = mx.random.normal((MAX_TOKENS, 512)).astype(mx.bfloat16)
    weight = mx.random.normal((300, 512)).astype(mx.bfloat16)
    whole = multiply(x, weight)
    assert all(mx.array_equal(multiply(x[:count], weight), whole[:count]).item() for count in range(2, MAX_TOKENS))


@needs_cuda
def test_memory_may_begin_anywhere() -> None:
    x = mx.random.normal((1000,)).astype(mx.bfloat16)[3 : 3 + 4 * 96].reshape(4, 96)
    weight = mx.random.normal((5000,)).astype(mx.bfloat16)[1 : 1 + 50 * 96].reshape(50, 96)
    assert mx.allclose(multiply(x, weight), x.astype(mx.float32) @ weight.T, atol=0.2).item()


@needs_cuda
def test_it_takes_the_place_of_linear_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.Linear(64, 48)
    layer.set_dtype(mx.bfloat16)
    x = mx.random.normal((5, 1, 64)).astype(mx.bfloat16)
    plain = layer(x)
    monkeypatch.setattr(nn.Linear, "__call__", nn.Linear.__call__)
    replace_linear()
    assert mx.array_equal(layer(x), multiply(x, layer.weight, layer.bias)).item()
    assert mx.allclose(layer(x), plain, atol=0.02).item()
    assert mx.array_equal(layer(x[:1]), plain[:1]).item()


@pytest.mark.parametrize(
    ("tokens", "outputs", "inputs", "dtype", "suits"),
    [
        (2, 64, 64, mx.bfloat16, True),
        (MAX_TOKENS, 64, 64, mx.float16, True),
        (1, 64, 64, mx.bfloat16, False),
        (MAX_TOKENS + 1, 64, 64, mx.bfloat16, False),
        (2, 64, 48, mx.bfloat16, False),
        (2, 64, 64, mx.float32, False),
        (2, MAX_WEIGHTS // 64 + 1, 64, mx.bfloat16, False),
    ],
    ids=["two tokens", "the most", "one token", "too many", "odd inputs", "float32", "too large"],
)
def test_it_does_what_it_is_made_for(tokens: int, outputs: int, inputs: int, dtype: mx.Dtype, suits: bool) -> None:
    assert suits_kernel(mx.zeros((tokens, 1, inputs), dtype), mx.zeros((outputs, inputs), dtype)) == suits


def test_an_input_of_another_type_is_left_to_mlx() -> None:
    assert not suits_kernel(mx.zeros((2, 64)), mx.zeros((64, 64), mx.bfloat16))


@pytest.mark.skipif(mx.cuda.is_available(), reason="this is about all other devices")
def test_other_devices_keep_the_layers_of_mlx() -> None:
    plain = nn.Linear.__call__
    replace_linear()
    assert nn.Linear.__call__ is plain
