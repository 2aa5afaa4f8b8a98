"""Linear layers of few tokens on CUDA, by a kernel.

MLX lets cuBLAS multiply, and records each call as a CUDA graph of its own. That takes the process three times as long
as to start a kernel, and a step of a small model has a hundred products. Its tokens are few. So a simple kernel takes
no longer: each block computes some outputs of all tokens, and its warps share the inputs.

The instruction of the tensor cores is described at
https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float. It sums over 16
inputs in any order. So each lane takes eight that lie side by side, of the weights and of the tokens alike.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import mlx.core as mx
from mlx import nn

from .cuda import LANES, new_kernel, uses_cuda

MAX_TOKENS: Final = 32
"""Maximum tokens of a product. For more, cuBLAS reads the weights faster."""
MAX_WEIGHTS: Final = 2**24
"""Maximum number of weights. For more, cuBLAS gains as much on the device as it costs the process."""
_INPUTS: Final = 32
"""Inputs that a warp reads at once. Those of a layer must be a multiple of them."""
_OUTPUTS: Final = 32
"""Outputs of a block."""
_WARPS: Final = 8
"""Warps of a block."""
_DTYPES: Final = (mx.float16, mx.bfloat16)
_MIN_CAPABILITY: Final = 8
"""The compute capability from which the tensor cores take 16 inputs of these types."""

_SOURCE: Final = """
constexpr int TILES = OUTPUTS / 16, GROUPS = TOKENS / 8;
__shared__ float parts[WARPS][TOKENS][OUTPUTS + 4];  // four more, so that lanes write to different banks
int lane = threadIdx.x, warp = threadIdx.y, place = lane / 4, share = lane % 4 * 8;
int outputs = w_shape[0], inputs = w_shape[1], tokens = 1;
for (int i = 0; i < x_ndim - 1; i++) tokens *= x_shape[i];
int first = blockIdx.x * OUTPUTS, groups = (tokens + 7) / 8;
bool aligned = ((uintptr_t(x) | uintptr_t(w)) & 15) == 0;
auto read = [aligned](const T* at) {
    if (aligned) return __ldg(reinterpret_cast<const uint4*>(at));
    uint4 pack;
    for (int i = 0; i < 8; i++) reinterpret_cast<T*>(&pack)[i] = at[i];
    return pack;
};
auto add = [](float (&sum)[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t p, uint32_t q) {
    if constexpr (BRAIN)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(p), "r"(q));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(p), "r"(q));
};

float sums[TILES][GROUPS][4] = {};
const T* weights[TILES][2];
for (int t = 0; t < TILES; t++)
    for (int i = 0; i < 2; i++)
        weights[t][i] = w + int64_t(min(first + 16 * t + 8 * i + place, outputs - 1)) * inputs + share;
const T* own = x + int64_t(place) * inputs + share;
for (int k = warp * 32; k < inputs; k += WARPS * 32) {
    uint4 a[TILES][2], b[GROUPS];
    #pragma unroll
    for (int t = 0; t < TILES; t++) {
        a[t][0] = read(weights[t][0] + k);
        a[t][1] = read(weights[t][1] + k);
    }
    #pragma unroll
    for (int j = 0; j < GROUPS; j++) {
        b[j] = uint4{0, 0, 0, 0};
        if (8 * j + place < tokens) b[j] = read(own + 8 * j * inputs + k);
    }
    #pragma unroll
    for (int j = 0; j < GROUPS; j++)
        if (j < groups)
            #pragma unroll
            for (int t = 0; t < TILES; t++) {
                add(sums[t][j], a[t][0].x, a[t][1].x, a[t][0].y, a[t][1].y, b[j].x, b[j].y);
                add(sums[t][j], a[t][0].z, a[t][1].z, a[t][0].w, a[t][1].w, b[j].z, b[j].w);
            }
}

for (int t = 0; t < TILES; t++)
    for (int j = 0; j < GROUPS; j++)
        for (int i = 0; i < 4; i++)
            parts[warp][8 * j + lane % 4 * 2 + i % 2][16 * t + i / 2 * 8 + place] = sums[t][j][i];
__syncthreads();
for (int i = warp * 32 + lane; i < tokens * OUTPUTS; i += WARPS * 32) {
    int token = i / OUTPUTS, output = i % OUTPUTS;
    int at = first + output;
    if (at >= outputs) continue;
    float sum = bias_ndim == 1 ? float(bias[at]) : 0.0f;  // the weights stand for no bias
    for (int j = 0; j < WARPS; j++) sum += parts[j][token][output];
    out[int64_t(token) * outputs + at] = T(sum);
}
"""


def replace_linear() -> None:
    """Let the kernel do the products of all linear layers that it suits. Does nothing on other devices."""
    if uses_cuda() and int(mx.device_info().get("compute_capability_major", 0)) >= _MIN_CAPABILITY:
        nn.Linear.__call__ = _call


_plain: Any = nn.Linear.__call__


def _call(self: Any, x: mx.array) -> mx.array:
    """Return a linear layer's output."""
    weight, bias = self["weight"], self.get("bias")
    return multiply(x, weight, bias) if suits_kernel(x, weight, bias) else _plain(self, x)


def suits_kernel(x: mx.array, weight: mx.array, bias: mx.array | None = None) -> bool:
    """Return whether `multiply` is faster than MLX, with the same type. The arguments are those of `multiply`."""
    inputs = x.shape[-1]
    return (
        inputs < x.size <= MAX_TOKENS * inputs  # for a single token, MLX has a kernel too
        and x.dtype == weight.dtype
        and (bias is None or x.dtype == bias.dtype)
        and x.dtype in _DTYPES
        and inputs % _INPUTS == 0
        and weight.size <= MAX_WEIGHTS
    )


def multiply(x: mx.array, weight: mx.array, bias: mx.array | None = None) -> mx.array:
    """Return the output of a linear layer for a few tokens.

    Args:
        x: The tokens, of shape (..., inputs).
        weight: The weights, of shape (outputs, inputs).
        bias: The bias, of shape (outputs,); None without.
    """
    [product] = _product(x.shape, weight.shape[0], x.dtype)(x, weight, weight if bias is None else bias)
    return product


@lru_cache(1024)
def _product(shape: tuple[int, ...], outputs: int, dtype: mx.Dtype) -> Callable[..., list[mx.array]]:
    """Return a product as a compiled function, whose call takes a third of a kernel's call."""

    def run(*inputs: mx.array) -> list[mx.array]:
        return _kernel(dtype)(
            inputs=list(inputs),
            grid=(LANES * -(-outputs // _OUTPUTS), _WARPS, 1),
            threadgroup=(LANES, _WARPS, 1),
            output_shapes=[(*shape[:-1], outputs)],
            output_dtypes=[dtype],
        )

    return mx.compile(run)


@lru_cache
def _kernel(dtype: mx.Dtype) -> Callable[..., list[mx.array]]:
    constants = {"TOKENS": MAX_TOKENS, "OUTPUTS": _OUTPUTS, "WARPS": _WARPS, "BRAIN": dtype == mx.bfloat16}
    return new_kernel("skinny_product", _SOURCE, ["x", "w", "bias"], dtype, **constants)
