"""The CUDA kernel for one query of each row, against MLX's attention in float32."""

from typing import Any

import mlx.core as mx
import pytest

from lmwire_worker.models.attention import attend
from lmwire_worker.models.decode_attention import MAX_UNMASKED_KEYS, UNMASKED_CONTEXTS, attend_one_query, suits_kernel

SHAPES = [(1, 4, 4, 1), (2, 8, 2, 3), (3, 8, 1, 37), (2, 4, 2, 300)]
"""Rows, heads, heads of keys and context."""
KINDS = [(mx.bfloat16, 128), (mx.float16, 64), (mx.float16, 96), (mx.float32, 32), (mx.float32, 256)]
"""Types, and widths of a head."""
TOLERANCES = {mx.bfloat16: 2e-2, mx.float16: 3e-3, mx.float32: 2e-5}
SCALE = 0.1


def assert_exact(found: mx.array, *tensors: mx.array, mask: mx.array | None) -> None:
    """Check numbers against those of MLX in float32."""
    exact = mx.fast.scaled_dot_product_attention(
        *(each.astype(mx.float32) for each in tensors), scale=SCALE, mask=mask, stream=mx.cpu
    )
    assert mx.allclose(found, exact, rtol=0, atol=TOLERANCES[found.dtype]).item()


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
@pytest.mark.parametrize("masks", ["none", "one", "one a row"])
@pytest.mark.parametrize(("dtype", "width"), KINDS, ids=str)
def test_it_is_as_exact_as_its_type(dtype: mx.Dtype, width: int, masks: str) -> None:
    for rows, heads, groups, context in SHAPES:
        q = mx.random.normal((rows, 1, heads, width)).astype(dtype).swapaxes(1, 2)
        k, v = (mx.random.normal((rows, groups, context + 5, width)).astype(dtype)[:, :, :context] for _ in "kv")
        mask = mx.random.uniform(shape=(rows if masks == "one a row" else 1, 1, 1, context)) > 0.3
        mask[..., -1] = True
        mask[0, ..., : context // 2] = False
        own = None if masks == "none" else mask
        mx.eval(q, k, v, mask)
        found = attend_one_query(q, k, v, SCALE, own)
        assert found.dtype == dtype
        assert_exact(found, q, k, v, mask=own)


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_keys_may_lie_in_any_order() -> None:
    q, v = mx.random.normal((2, 4, 1, 64)), mx.random.normal((2, 4, 9, 64))
    k = mx.random.normal((2, 4, 64, 9)).swapaxes(-1, -2)
    mx.eval(q, k, v)
    assert_exact(attend_one_query(q, k, v, SCALE), q, k, v, mask=None)


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_a_query_that_attends_to_nothing_gets_zeros() -> None:
    q, k = mx.ones((1, 2, 1, 64)), mx.ones((1, 2, 5, 64))
    assert not attend_one_query(q, k, k, SCALE, mx.zeros((1, 1, 1, 5), mx.bool_)).any().item()


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_kernels")
def test_models_use_it_for_their_answers() -> None:
    q, k, v = (mx.random.normal((2, 4, tokens, 64)) for tokens in (1, 9, 9))
    mask = mx.arange(9) > mx.array([3, 0]).reshape(2, 1, 1, 1)
    mx.eval(q, k, v, mask)
    found = attend(q, k, v, scale=SCALE, mask=mask)
    assert mx.array_equal(found, attend_one_query(q, k, v, SCALE, mask)).item()


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
def test_mlx_attends_where_the_kernel_cannot(queries: int, width: int, mask: Any) -> None:
    q, k = mx.ones((2, 4, queries, width)), mx.ones((2, 4, mask.shape[-1], width))
    assert not suits_kernel(q, k, k, mask)
