"""The CUDA kernel for linear layers of few tokens, against MLX in float32."""

import weakref

import mlx.core as mx
import pytest
from mlx import nn

from lmwire_worker.models import skinny_product
from lmwire_worker.models.skinny_product import (
    MAX_NORMED_TOKENS,
    MAX_TOKENS,
    MAX_WEIGHTS,
    MAX_WEIGHTS_ALONE,
    Norm,
    multiply,
    replace_layers,
    suits_kernel,
)

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
@pytest.mark.parametrize("tokens", [(1, 1), (3,), (1, 5), (MAX_NORMED_TOKENS, 1)], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_a_norm_may_come_first(dtype: mx.Dtype, tokens: tuple[int, ...]) -> None:
    for outputs, inputs in SHAPES:
        x = 3 * mx.random.normal((*tokens, inputs)).astype(dtype)
        weight = mx.random.normal((outputs, inputs)).astype(dtype)
        scales = mx.random.normal((inputs,)).astype(dtype)
        found = multiply(x, weight, norm=Norm(scales, 0.5))
        exact = mx.fast.rms_norm(x.astype(mx.float32), scales.astype(mx.float32), 0.5) @ weight.astype(mx.float32).T
        assert (abs(found - exact).max() <= 2 * TOLERANCES[dtype] * abs(exact).max()).item()  # its inputs are rounded


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
def layer(monkeypatch: pytest.MonkeyPatch) -> nn.Linear:
    """Return a layer. A test may replace the functions of all layers."""
    for kind in (nn.Linear, nn.RMSNorm):
        monkeypatch.setattr(kind, "__call__", kind.__call__)
    layer = nn.Linear(64, 48)
    layer.set_dtype(mx.bfloat16)
    return layer


@pytest.fixture
def replaced(layer: nn.Linear, monkeypatch: pytest.MonkeyPatch) -> nn.Linear:
    """Return a layer whose products the kernel does."""
    monkeypatch.setattr(skinny_product, "uses_cuda", lambda: True)
    monkeypatch.setattr(mx, "device_info", lambda: {"compute_capability_major": 8})
    replace_layers()
    return layer


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_it_takes_the_place_of_linear_layers(replaced: nn.Linear) -> None:
    x = mx.random.normal((5, 1, 64)).astype(mx.bfloat16)
    assert mx.array_equal(replaced(x), multiply(x, replaced.weight, replaced.bias)).item()
    assert mx.array_equal(replaced(x[:1]), mx.addmm(replaced.bias, x[:1], replaced.weight.T)).item()


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_it_takes_the_place_of_a_norm_before_them(replaced: nn.Linear) -> None:
    norm = nn.RMSNorm(64)
    norm.weight = mx.random.normal((64,)).astype(mx.bfloat16)
    x = mx.random.normal((5, 1, 64)).astype(mx.bfloat16)
    for tokens in (x, x[:1]):
        found = replaced(norm(tokens))
        assert mx.array_equal(
            found, multiply(tokens, replaced.weight, replaced.bias, Norm(norm.weight, norm.eps))
        ).item()


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_an_older_output_of_a_norm_is_read_as_it_is(replaced: nn.Linear) -> None:
    norm = nn.RMSNorm(64)
    norm.set_dtype(mx.bfloat16)
    older, newer = norm(mx.ones((5, 1, 64), mx.bfloat16)), norm(-mx.ones((5, 1, 64), mx.bfloat16))
    for output in (older, newer):
        assert mx.allclose(replaced(output), multiply(output, replaced.weight, replaced.bias), atol=0.01).item()


def test_an_output_that_nothing_reads_leaves_the_memory(replaced: nn.Linear) -> None:
    x = mx.ones((2, 64))
    tokens = weakref.ref(x)
    output = nn.RMSNorm(64)(x)
    del x
    assert tokens() is not None
    del output
    assert tokens() is None


@pytest.mark.parametrize(("is_cuda", "capability"), [(False, 8), (True, 7)], ids=["another device", "an old one"])
def test_other_devices_keep_the_function_of_mlx(
    is_cuda: bool, capability: int, layer: nn.Linear, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nn.Linear.__call__, nn.RMSNorm.__call__
    monkeypatch.setattr(skinny_product, "uses_cuda", lambda: is_cuda)
    monkeypatch.setattr(mx, "device_info", lambda: {"compute_capability_major": capability})
    replace_layers()
    assert (nn.Linear.__call__, nn.RMSNorm.__call__) == plain


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
    assert not suits_kernel(x, weight, norm=Norm(mx.ones(64), 1e-6))
    assert suits_kernel(x, weight, mx.zeros(64, mx.bfloat16), Norm(mx.ones(64, mx.bfloat16), 1e-6))


def test_float16_is_normed_by_mlx_since_it_could_overflow() -> None:
    x, weight, scales = (mx.zeros(shape, mx.float16) for shape in ((2, 64), (64, 64), (64,)))
    assert suits_kernel(x, weight)
    assert not suits_kernel(x, weight, norm=Norm(scales, 1e-6))


@pytest.mark.parametrize(
    ("tokens", "outputs", "suits"),
    [
        (1, 64, True),
        (MAX_NORMED_TOKENS, 64, True),
        (MAX_NORMED_TOKENS + 1, 64, False),
        (1, MAX_WEIGHTS_ALONE // 64, True),
        (1, MAX_WEIGHTS_ALONE // 64 + 1, False),
        (2, MAX_WEIGHTS // 64, True),
    ],
    ids=["one token", "the most", "too many", "one and the most weights", "one and too many", "the most weights"],
)
def test_it_norms_a_few_tokens(tokens: int, outputs: int, suits: bool) -> None:
    x, weight = mx.zeros((tokens, 1, 64), mx.bfloat16), mx.zeros((outputs, 64), mx.bfloat16)
    assert suits_kernel(x, weight, norm=Norm(mx.ones(64, mx.bfloat16), 1e-6)) == suits
