"""The CUDA kernel for one query of each row, against MLX's attention in float32: on a GPU, and its source on a CPU."""

from typing import Any

import mlx.core as mx
import pytest

from lmwire_worker.models.decode_attention import MAX_UNMASKED_KEYS, UNMASKED_CONTEXTS, attend_once, suits_kernel

needs_cuda = pytest.mark.skipif(not mx.cuda.is_available(), reason="the kernel runs on CUDA only")
SHAPES = [
    (1, 4, 4, 1),
    (2, 8, 2, 3),
    (3, 8, 1, 37),
    (8, 16, 8, 777),
    (5, 12, 4, 2049),
]
"""Rows, heads, heads of keys and context."""
TOLERANCES = {mx.bfloat16: 2e-2, mx.float16: 3e-3, mx.float32: 2e-5}
WIDTHS = (32, 64, 96, 128, 256)
SCALE = 0.1


def assert_exact(found: mx.array, *tensors: mx.array, mask: mx.array | None) -> None:
    """Check numbers against those of MLX in float32."""
    exact = mx.fast.scaled_dot_product_attention(
        *(each.astype(mx.float32) for each in tensors), scale=SCALE, mask=mask, stream=mx.cpu
    )
    assert mx.allclose(found, exact, rtol=0, atol=TOLERANCES[found.dtype]).item()


@needs_cuda
@pytest.mark.parametrize("mask_rows", [0, 1, 2], ids=["no mask", "one mask", "a mask for each row"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_it_is_as_exact_as_its_type(dtype: mx.Dtype, shape: tuple[int, ...], mask_rows: int) -> None:
    rows, heads, groups, context = shape
    for width in WIDTHS:
        q = mx.random.normal((rows, 1, heads, width)).astype(dtype).swapaxes(1, 2)
        k, v = (mx.random.normal((rows, groups, context + 5, width)).astype(dtype)[:, :, :context] for _ in "kv")
        mask = mx.random.uniform(shape=(rows if mask_rows == 2 else 1, 1, 1, context)) > 0.3
        mask[..., -1] = True
        mask[0, ..., : context // 2] = False
        own = mask if mask_rows else None
        found = attend_once(q, k, v, SCALE, own)
        assert found.dtype == dtype
        assert_exact(found, q, k, v, mask=own)


@pytest.mark.slow
@pytest.mark.parametrize("mask_rows", [0, 1, 3], ids=["no mask", "one mask", "a mask for each row"])
@pytest.mark.parametrize("context", [1, 37, 300])
def test_its_source_is_right_on_a_cpu(context: int, mask_rows: int, emulated_kernels: None) -> None:
    q = mx.random.normal((3, 1, 4, 64)).swapaxes(1, 2)
    k, v = (mx.random.normal((3, 2, context + 5, 64))[:, :, :context] for _ in "kv")
    mask = mx.random.uniform(shape=(max(mask_rows, 1), 1, 1, context)) > 0.5
    mask[..., 0] = True
    own = mask if mask_rows else None
    mx.eval(q, k, v, mask)
    assert_exact(attend_once(q, k, v, SCALE, own), q, k, v, mask=own)


@pytest.mark.slow
def test_its_source_gives_zeros_where_nothing_is_attended_to(emulated_kernels: None) -> None:
    q, k = mx.ones((1, 2, 1, 64)), mx.ones((1, 2, 5, 64))
    assert not attend_once(q, k, k, SCALE, mx.zeros((1, 1, 1, 5), mx.bool_)).any().item()


@needs_cuda
def test_the_same_input_has_the_same_bits() -> None:
    q, k, v = (mx.random.normal((2, 4, tokens, 64)).astype(mx.bfloat16) for tokens in (1, 6000, 6000))
    first = attend_once(q, k, v, SCALE)
    assert all(mx.array_equal(attend_once(q, k, v, SCALE), first).item() for _ in range(20))


@needs_cuda
def test_keys_may_lie_in_any_order() -> None:
    q, v = mx.random.normal((2, 4, 1, 64)), mx.random.normal((2, 4, 9, 64))
    k = mx.random.normal((2, 4, 64, 9)).swapaxes(-1, -2)
    assert_exact(attend_once(q, k, v, SCALE), q, k, v, mask=None)


@needs_cuda
def test_a_query_that_attends_to_nothing_gets_zeros() -> None:
    q, k, v = (mx.random.normal((1, 2, tokens, 32)) for tokens in (1, 5, 5))
    assert not attend_once(q, k, v, SCALE, mx.zeros((1, 1, 1, 5), mx.bool_)).any().item()


@needs_cuda
@pytest.mark.parametrize(
    ("rows", "context", "mask", "suits"),
    [
        (1, UNMASKED_CONTEXTS.start, None, True),
        (1, UNMASKED_CONTEXTS.start - 1, None, False),
        (1, UNMASKED_CONTEXTS.stop - 1, None, True),
        (1, UNMASKED_CONTEXTS.stop, None, False),
        (64, MAX_UNMASKED_KEYS // 64 // 4, None, True),
        (64, MAX_UNMASKED_KEYS // 64 // 4 + 1, None, False),
        (64, 5000, mx.ones((64, 1, 1, 5000), mx.bool_), True),
        (1, 5000, mx.ones((1, 1, 1, 5000), mx.bool_), False),
    ],
)
def test_it_attends_where_it_is_faster(rows: int, context: int, mask: mx.array | None, suits: bool) -> None:
    q, k = mx.zeros((rows, 4, 1, 64)), mx.zeros((rows, 4, context, 64))
    assert suits_kernel(q, k, k, mask) == suits


@needs_cuda
@pytest.mark.parametrize(
    ("queries", "width", "mask"),
    [
        (2, 64, mx.ones((2, 1, 2, 9), mx.bool_)),
        (1, 80, mx.ones((2, 1, 1, 9), mx.bool_)),
        (1, 64, mx.ones((2, 4, 1, 9), mx.bool_)),
        (1, 64, mx.ones((1, 9), mx.bool_)),
        (1, 64, mx.zeros((2, 1, 1, 9))),
    ],
    ids=["two queries", "another width", "a mask for each head", "a flat mask", "numbers to add"],
)
def test_mlx_attends_where_the_kernel_does_not_suit(queries: int, width: int, mask: Any) -> None:
    q, k = mx.ones((2, 4, queries, width)), mx.ones((2, 4, mask.shape[-1], width))
    assert not suits_kernel(q, k, k, mask)


@pytest.mark.skipif(mx.cuda.is_available(), reason="this is about all other devices")
def test_other_devices_do_without_it() -> None:
    q, k = mx.ones((2, 4, 1, 64)), mx.ones((2, 4, 9, 64))
    assert not suits_kernel(q, k, k, None)
