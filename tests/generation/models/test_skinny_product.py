"""The CUDA kernel for linear layers of few tokens, against MLX in float32."""

from collections.abc import Iterator

import mlx.core as mx
import pytest
from mlx import nn

from lmwire_worker.models import skinny_product
from lmwire_worker.models.skinny_product import MAX_TOKENS, MAX_WEIGHTS, multiply, replace_linear, suits_kernel

SHAPES = [(17, 32), (100, 320), (64, 96)]
"""Outputs and inputs."""
TOKENS = [(2,), (1, 3), (8, 1), (3, 3), (31, 1), (1, MAX_TOKENS)]
"""The sizes of an input, without its last one."""
TOLERANCES = {mx.bfloat16: 5e-3, mx.float16: 1e-3}
"""Maximum error, as a share of the largest output."""


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
@pytest.mark.parametrize("is_biased", [False, True], ids=["", "biased"])
@pytest.mark.parametrize("tokens", TOKENS, ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_it_is_as_exact_as_its_type(dtype: mx.Dtype, tokens: tuple[int, ...], is_biased: bool) -> None:
    for outputs, inputs in SHAPES:
        x = mx.random.normal((*tokens, inputs)).astype(dtype)
        weight = mx.random.normal((outputs, inputs)).astype(dtype)
        bias = mx.random.normal((outputs,)).astype(dtype) if is_biased else None
        found = multiply(x, weight, bias)
        exact = x.astype(mx.float32) @ weight.astype(mx.float32).T + (0 if bias is None else bias)
        assert found.dtype == dtype
        assert found.shape == (*tokens, outputs)
        assert (abs(found - exact).max() <= TOLERANCES[dtype] * abs(exact).max()).item()


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_a_token_does_not_depend_on_its_neighbours() -> None:
    x = mx.random.normal((MAX_TOKENS, 512)).astype(mx.bfloat16)
    weight = mx.random.normal((40, 512)).astype(mx.bfloat16)
    whole = multiply(x, weight)
    assert all(mx.array_equal(multiply(x[:count], weight), whole[:count]).item() for count in (2, 9, 31))


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_memory_may_begin_anywhere() -> None:
    x = mx.random.normal((1000,)).astype(mx.float16)[3 : 3 + 4 * 96].reshape(4, 96)
    weight = mx.random.normal((5000,)).astype(mx.float16)[1 : 1 + 50 * 96].reshape(50, 96)
    mx.eval(x, weight)
    assert mx.allclose(multiply(x, weight), x.astype(mx.float32) @ weight.T, atol=0.05).item()


@pytest.fixture
def layer() -> Iterator[nn.Linear]:
    """Yield a layer, and give all layers their own function again."""
    plain = nn.Linear.__call__
    layer = nn.Linear(64, 48)
    layer.set_dtype(mx.bfloat16)
    yield layer
    nn.Linear.__call__ = plain


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_it_takes_the_place_of_linear_layers(layer: nn.Linear, monkeypatch: pytest.MonkeyPatch) -> None:
    x = mx.random.normal((5, 1, 64)).astype(mx.bfloat16)
    one = layer(x[:1])
    monkeypatch.setattr(skinny_product, "uses_cuda", lambda: True)
    monkeypatch.setattr(mx, "device_info", lambda: {"compute_capability_major": 8})
    replace_linear()
    assert mx.array_equal(layer(x), multiply(x, layer.weight, layer.bias)).item()
    assert mx.array_equal(layer(x[:1]), one).item()


@pytest.mark.parametrize(("is_cuda", "capability"), [(False, 8), (True, 7)], ids=["another device", "an old one"])
def test_other_devices_keep_the_function_of_mlx(
    is_cuda: bool, capability: int, layer: nn.Linear, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nn.Linear.__call__
    monkeypatch.setattr(skinny_product, "uses_cuda", lambda: is_cuda)
    monkeypatch.setattr(mx, "device_info", lambda: {"compute_capability_major": capability})
    replace_linear()
    assert nn.Linear.__call__ is plain


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


def test_layers_of_several_types_are_left_to_mlx() -> None:
    x, weight = mx.zeros((2, 64), mx.bfloat16), mx.zeros((64, 64), mx.bfloat16)
    assert not suits_kernel(x.astype(mx.float32), weight)
    assert not suits_kernel(x, weight, mx.zeros(64))
    assert suits_kernel(x, weight, mx.zeros(64, mx.bfloat16))
