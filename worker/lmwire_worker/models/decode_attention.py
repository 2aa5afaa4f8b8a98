"""Attention of one query of each row, in one CUDA kernel.

Rows of different lengths need a mask. MLX's kernels for decoding on CUDA take none, so that MLX makes five operations
instead, which read and write all scores. Without a mask, MLX lets cuDNN attend. Its start takes the process five times
as long as that of a kernel, which is longer than a short context takes the device.

This kernel never stores the scores: it is the online softmax of https://arxiv.org/abs/1805.02867. Each block has one
query of one head. Its warps share the context, and each takes a few keys at a time.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import mlx.core as mx

from .cuda import LANES, new_kernel

SHORT_CONTEXT: Final = 4096
MIN_BLOCKS: Final = 128
"""Minimum number of blocks for a longer context under a mask. Fewer leave a part of a large GPU idle; MLX's operations
do not."""
UNMASKED_CONTEXTS: Final = range(256, 2049)
"""Contexts without a mask. MLX has a kernel for shorter ones, and cuDNN reads longer ones faster."""
MAX_UNMASKED_KEYS: Final = 2**16
"""Maximum number of keys of all rows without a mask. cuDNN reads more of them faster."""
_WIDTHS: Final = (32, 64, 96, 128, 256)
_WARPS: Final = 8
"""Warps of a block. With more, few blocks run at once, and each adds more sums at its end."""
_KEYS: Final = 4
"""Keys that a warp reads at once."""
_DTYPES: Final = (mx.float16, mx.bfloat16, mx.float32)

_SOURCE: Final = """
constexpr int ITEMS = WIDTH / 32;  // of a lane
constexpr int ALIGNMENT = (ITEMS & (ITEMS - 1)) ? sizeof(T) : sizeof(T) * ITEMS;
constexpr float NONE = -1e30f;
struct alignas(ALIGNMENT) Pack { T items[ITEMS]; };

int lane = threadIdx.x, warp = threadIdx.y;
int head = blockIdx.x, row = blockIdx.y;
int heads = q_shape[1], context = k_shape[2];
bool is_masked = mask_shape[3] == context;
int group = head / (heads / k_shape[1]);
const T* query = q + row * q_strides[0] + head * q_strides[1];
const T* keys = k + row * k_strides[0] + group * k_strides[1];
const T* values = v + row * v_strides[0] + group * v_strides[1];
const bool* allowed = mask + (mask_shape[0] > 1 ? row * mask_strides[0] : 0);
auto read = [lane](const T* from, int64_t stride) {
    Pack pack;
    if (stride == 1) return *reinterpret_cast<const Pack*>(from + lane * ITEMS);
    for (int j = 0; j < ITEMS; j++) pack.items[j] = from[(lane * ITEMS + j) * stride];
    return pack;
};

float scaled[ITEMS], sums[ITEMS];
Pack own = read(query, q_strides[3]);
for (int j = 0; j < ITEMS; j++) {
    scaled[j] = float(own.items[j]) * scale[0] * 1.44269504f;  // log2(e), since exp2f is faster
    sums[j] = 0;
}
float top = NONE, total = 0;
for (int i = warp * KEYS; i < context; i += WARPS * KEYS) {
    bool is_allowed[KEYS];
    bool any = false;
    #pragma unroll
    for (int u = 0; u < KEYS; u++) {
        is_allowed[u] = i + u < context && (!is_masked || allowed[(i + u) * mask_strides[3]]);
        any |= is_allowed[u];
    }
    if (!any) continue;
    float scores[KEYS];
    Pack taken[KEYS];
    #pragma unroll
    for (int u = 0; u < KEYS; u++) {
        int at = min(i + u, context - 1);
        Pack key = read(keys + at * k_strides[2], k_strides[3]);
        taken[u] = read(values + at * v_strides[2], v_strides[3]);
        scores[u] = 0;
        #pragma unroll
        for (int j = 0; j < ITEMS; j++) scores[u] += scaled[j] * float(key.items[j]);
    }
    #pragma unroll
    for (int offset = 16; offset; offset >>= 1)
        #pragma unroll
        for (int u = 0; u < KEYS; u++) scores[u] += __shfl_xor_sync(0xffffffff, scores[u], offset);
    float best = top;
    #pragma unroll
    for (int u = 0; u < KEYS; u++) if (is_allowed[u]) best = fmaxf(best, scores[u]);
    float decay = exp2f(top - best);
    top = best;
    total *= decay;
    #pragma unroll
    for (int j = 0; j < ITEMS; j++) sums[j] *= decay;
    #pragma unroll
    for (int u = 0; u < KEYS; u++) {
        float weight = is_allowed[u] ? exp2f(scores[u] - top) : 0.0f;
        total += weight;
        #pragma unroll
        for (int j = 0; j < ITEMS; j++) sums[j] += weight * float(taken[u].items[j]);
    }
}

__shared__ float tops[WARPS], totals[WARPS], found[WARPS][WIDTH];
if (lane == 0) {
    tops[warp] = top;
    totals[warp] = total;
}
for (int j = 0; j < ITEMS; j++) found[warp][lane * ITEMS + j] = sums[j];
__syncthreads();
for (int item = warp * 32 + lane; item < WIDTH; item += WARPS * 32) {
    float best = NONE, whole = 0, sum = 0;
    for (int w = 0; w < WARPS; w++) best = fmaxf(best, tops[w]);
    for (int w = 0; w < WARPS; w++) {
        float decay = exp2f(tops[w] - best);
        whole += totals[w] * decay;
        sum += found[w][item] * decay;
    }
    out[(int64_t(row) * heads + head) * WIDTH + item] = T(whole > 0 ? sum / whole : 0.0f);
}
"""


def suits_kernel(queries: mx.array, keys: mx.array, values: mx.array, mask: mx.array | None) -> bool:
    """Return whether `attend_one_query` is faster than MLX. The arguments are those of `attend_one_query`."""
    _, _, tokens, width = queries.shape
    return (
        tokens == 1
        and width in _WIDTHS
        and width == values.shape[3]
        and queries.dtype in _DTYPES
        and queries.dtype == keys.dtype == values.dtype
        and (_is_small(keys) if mask is None else _suits(mask, queries, keys))
    )


def _is_small(keys: mx.array) -> bool:
    """Return whether the kernel is faster than cuDNN."""
    rows, groups, context, _ = keys.shape
    return context in UNMASKED_CONTEXTS and rows * groups * context <= MAX_UNMASKED_KEYS


def _suits(mask: mx.array, queries: mx.array, keys: mx.array) -> bool:
    rows, heads, _, _ = queries.shape
    context = keys.shape[2]
    return (
        mask.dtype == mx.bool_
        and mask.shape in ((rows, 1, 1, context), (1, 1, 1, context))
        and (context <= SHORT_CONTEXT or rows * heads >= MIN_BLOCKS)
    )


def attend_one_query(
    queries: mx.array, keys: mx.array, values: mx.array, scale: float, mask: mx.array | None = None
) -> mx.array:
    """Return the attention of one query of each row and head.

    A query that attends to nothing gets zeros.

    Args:
        queries: The queries, of shape (rows, heads, 1, width).
        keys: The keys, of shape (rows, heads of keys, context, width).
        values: The values, of the shape of the keys.
        scale: Factor of the scores.
        mask: True where a query attends, of shape (rows or 1, 1, 1, context); None for everywhere.
    """
    rows, heads, _, width = queries.shape
    [attended] = _kernel(queries.dtype, width)(
        inputs=[queries, keys, values, _no_mask() if mask is None else mask, _as_array(scale)],
        grid=(LANES * heads, _WARPS * rows, 1),
        threadgroup=(LANES, _WARPS, 1),
        output_shapes=[queries.shape],
        output_dtypes=[queries.dtype],
    )
    return attended


@lru_cache
def _kernel(dtype: mx.Dtype, width: int) -> Callable[..., list[mx.array]]:
    inputs = ["q", "k", "v", "mask", "scale"]
    constants = {"WIDTH": width, "WARPS": _WARPS, "KEYS": _KEYS}
    return new_kernel("decode_attention", _SOURCE, inputs, dtype, any_order=True, **constants)


@lru_cache(64)
def _as_array(scale: float) -> mx.array:
    return mx.array([scale], mx.float32)


@lru_cache(1)
def _no_mask() -> mx.array:
    """Return what stands for no mask: it does not have the size of a context."""
    return mx.array([[[[True]]]])
