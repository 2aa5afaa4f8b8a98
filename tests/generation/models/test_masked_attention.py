"""The CUDA kernel for a query under a mask, against MLX's attention in float32. Runs where there is a GPU."""

from itertools import product

import mlx.core as mx
import pytest

from lmwire_worker.models.masked_attention import attend_masked, suits_kernel

needs_cuda = pytest.mark.skipif(not mx.cuda.is_available(), reason="the kernel runs on CUDA only")
SHAPES = [
    (1, 4, 4, 1, 1),
    (2, 8, 2, 1, 3),
    (3, 8, 1, 2, 37),
    (8, 16, 8, 1, 777),
    (2, 4, 2, 4, 130),
    (5, 12, 4, 3, 2049),
]
"""Rows, heads, heads of keys, queries and context."""
TOLERANCES = {mx.bfloat16: 2e-2, mx.float16: 3e-3, mx.float32: 2e-5}
WIDTHS = (32, 64, 96, 128, 256)
SCALE = 0.1


def assert_exact(found: mx.array, *tensors: mx.array, mask: mx.array) -> None:
    """Check numbers against those of MLX in float32."""
    exact = mx.fast.scaled_dot_product_attention(
        *(each.astype(mx.float32) for each in tensors), scale=SCALE, mask=mask, stream=mx.cpu
    )
    assert mx.allclose(found, exact, rtol=0, atol=TOLERANCES[found.dtype]).item()


@needs_cuda
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_it_is_as_exact_as_its_type(dtype: mx.Dtype, shape: tuple[int, ...]) -> None:
    rows, heads, groups, queries, context = shape
    for width, mask_rows in product(WIDTHS, (1, rows)):
        q = mx.random.normal((rows, queries, heads, width)).astype(dtype).swapaxes(1, 2)
        k, v = (mx.random.normal((rows, groups, context + 5, width)).astype(dtype)[:, :, :context] for _ in "kv")
        mask = mx.random.uniform(shape=(mask_rows, 1, queries, context)) > 0.3
        mask[..., -1] = True
        mask[0, ..., : context // 2] = False
        assert suits_kernel(q, k, v, mask) == (queries == 1)
        found = attend_masked(q, k, v, SCALE, mask)
        assert found.dtype == dtype
        assert_exact(found, q, k, v, mask=mask)


@needs_cuda
def test_keys_may_lie_in_any_order() -> None:
    q, v = mx.random.normal((2, 4, 1, 64)), mx.random.normal((2, 4, 9, 64))
    k = mx.random.normal((2, 4, 64, 9)).swapaxes(-1, -2)
    mask = mx.ones((1, 1, 1, 9), mx.bool_)
    assert_exact(attend_masked(q, k, v, SCALE, mask), q, k, v, mask=mask)


@needs_cuda
def test_a_query_that_attends_to_nothing_gets_zeros() -> None:
    q, k, v = (mx.random.normal((1, 2, tokens, 32)) for tokens in (1, 5, 5))
    assert not attend_masked(q, k, v, SCALE, mx.zeros((1, 1, 1, 5), mx.bool_)).any().item()


@needs_cuda
@pytest.mark.parametrize(
    ("queries", "width", "mask"),
    [
        (2, 64, mx.ones((2, 1, 2, 9), mx.bool_)),
        (1, 80, mx.ones((2, 1, 1, 9), mx.bool_)),
        (1, 64, mx.ones((2, 4, 1, 9), mx.bool_)),
        (1, 64, mx.ones((1, 9), mx.bool_)),
        (1, 64, mx.zeros((2, 1, 1, 9))),
        (1, 64, mx.ones((2, 1, 1, 5000), mx.bool_)),
    ],
    ids=["two queries", "another width", "a mask for each head", "a flat mask", "numbers to add", "too few blocks"],
)
def test_mlx_attends_where_the_kernel_does_not_suit(queries: int, width: int, mask: mx.array) -> None:
    q, k = mx.ones((2, 4, queries, width)), mx.ones((2, 4, mask.shape[-1], width))
    assert not suits_kernel(q, k, k, mask)


@pytest.mark.skipif(mx.cuda.is_available(), reason="this is about all other devices")
def test_other_devices_do_without_it() -> None:
    q, k = mx.ones((2, 4, 1, 64)), mx.ones((2, 4, 9, 64))
    assert not suits_kernel(q, k, k, mx.ones((2, 1, 1, 9), mx.bool_))
