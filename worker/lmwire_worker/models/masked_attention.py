"""Attention of one query of each row under a mask, in one CUDA kernel.

Rows of different lengths need a mask. MLX's kernels for decoding on CUDA take none, so that MLX makes five operations
instead, which read and write all scores. This kernel never stores them: it is the online softmax of
https://arxiv.org/abs/1805.02867. Each block has one query of one head. Its warps share the context, and each takes a
few keys at a time.
"""

from functools import lru_cache
from typing import Any, Final

import mlx.core as mx

MAX_QUERIES: Final = 1
"""Maximum number of queries of a row. Each reads all keys, so that two are as fast as one product for both."""
SHORT_CONTEXT: Final = 4096
MIN_BLOCKS: Final = 128
"""Minimum number of blocks for a longer context. Fewer leave a part of a large GPU idle; MLX's operations do not."""
_LANES: Final = 32
_WARPS: Final = {32: 32, 64: 32, 96: 16, 128: 32, 256: 16}
"""The warps of a block, by the width of a head. More would need more registers than a block has."""
_DTYPES: Final = (mx.float16, mx.bfloat16, mx.float32)

_SOURCE: Final = """
constexpr int ITEMS = WIDTH / 32;  // of a lane
constexpr int KEYS = 4;  // that a warp reads at once
constexpr int ALIGNMENT = (ITEMS & (ITEMS - 1)) ? sizeof(T) : sizeof(T) * ITEMS;
constexpr float NONE = -1e30f;
struct alignas(ALIGNMENT) Pack { T items[ITEMS]; };

int lane = threadIdx.x, warp = threadIdx.y;
int head = blockIdx.x, row = blockIdx.y, query = blockIdx.z;
int heads = q_shape[1], context = k_shape[2];
int group = head / (heads / k_shape[1]);
const T* queries = q + row * q_strides[0] + head * q_strides[1] + query * q_strides[2];
const T* keys = k + row * k_strides[0] + group * k_strides[1];
const T* values = v + row * v_strides[0] + group * v_strides[1];
const bool* allowed = mask + (mask_shape[0] > 1 ? row * mask_strides[0] : 0) + query * mask_strides[2];
auto read = [lane](const T* from, int64_t stride) {
    Pack pack;
    if (stride == 1) return *reinterpret_cast<const Pack*>(from + lane * ITEMS);
    for (int j = 0; j < ITEMS; j++) pack.items[j] = from[(lane * ITEMS + j) * stride];
    return pack;
};

float scaled[ITEMS], sums[ITEMS];
Pack own = read(queries, q_strides[3]);
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
        is_allowed[u] = i + u < context && allowed[(i + u) * mask_strides[3]];
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

__shared__ float tops[WARPS], totals[WARPS], parts[WARPS][WIDTH];
if (lane == 0) {
    tops[warp] = top;
    totals[warp] = total;
}
for (int j = 0; j < ITEMS; j++) parts[warp][lane * ITEMS + j] = sums[j];
__syncthreads();
int item = warp * 32 + lane;
if (item < WIDTH) {
    float best = NONE, whole = 0, sum = 0;
    for (int w = 0; w < WARPS; w++) best = fmaxf(best, tops[w]);
    for (int w = 0; w < WARPS; w++) {
        float decay = exp2f(tops[w] - best);
        whole += totals[w] * decay;
        sum += parts[w][item] * decay;
    }
    int64_t at = (int64_t(row) * heads + head) * q_shape[2] + query;
    out[at * WIDTH + item] = T(whole > 0 ? sum / whole : 0.0f);
}
"""


def suits_kernel(queries: mx.array, keys: mx.array, values: mx.array, mask: mx.array) -> bool:
    """Return whether `attend_masked` computes these on this device. The arguments are those of `attend_masked`."""
    rows, heads, tokens, width = queries.shape
    return (
        mask.dtype == mx.bool_
        and tokens <= MAX_QUERIES
        and mask.ndim == 4
        and mask.shape[0] in (1, rows)
        and mask.shape[1:] == (1, tokens, keys.shape[2])
        and width == values.shape[3]
        and width in _WARPS
        and queries.dtype in _DTYPES
        and queries.dtype == keys.dtype == values.dtype
        and (keys.shape[2] <= SHORT_CONTEXT or rows * heads >= MIN_BLOCKS)
        and mx.cuda.is_available()
    )


def attend_masked(queries: mx.array, keys: mx.array, values: mx.array, scale: float, mask: mx.array) -> mx.array:
    """Return the attention of queries.

    A query that attends to nothing gets zeros.

    Args:
        queries: The queries, of shape (rows, heads, tokens, width).
        keys: The keys, of shape (rows, heads of keys, context, width).
        values: The values, of the shape of the keys.
        scale: Factor of the scores.
        mask: True where a query attends, of shape (rows or 1, 1, tokens, context).
    """
    rows, heads, tokens, width = queries.shape
    warps = _WARPS[width]
    [attended] = _kernel()(
        inputs=[queries, keys, values, mask, _as_array(scale)],
        template=[("T", queries.dtype), ("WIDTH", width), ("WARPS", warps)],
        grid=(_LANES * heads, warps * rows, tokens),
        threadgroup=(_LANES, warps, 1),
        output_shapes=[queries.shape],
        output_dtypes=[queries.dtype],
    )
    return attended


@lru_cache(1)
def _kernel() -> Any:
    return mx.fast.cuda_kernel(
        name="masked_attention",
        input_names=["q", "k", "v", "mask", "scale"],
        output_names=["out"],
        source=_SOURCE,
        ensure_row_contiguous=False,
    )


@lru_cache(64)
def _as_array(scale: float) -> mx.array:
    return mx.array([scale], mx.float32)
