"""Linear layers of few tokens on CUDA, by a kernel.

MLX lets cuBLAS multiply, and records each call as a CUDA graph of its own. That takes the process three times as long
as to start a kernel, and a step of a small model has a hundred products. Its tokens are few. So a simple kernel takes
no longer: each block computes some outputs of all tokens, and its warps share the inputs.

Most layers read the output of an RMS norm, which is one more operation to start. The kernel can compute it too. The
norm's factor of a token is the same for all of its inputs, so that the outputs are multiplied by it.

The instruction of the tensor cores is described at
https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float. It sums over 16
inputs in any order. So each lane takes eight that lie side by side, of the weights and of the tokens alike.
"""

import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import mlx.core as mx
from mlx import nn

from .cuda import LANES, new_kernel, uses_cuda

MAX_TOKENS: Final = 32
"""Maximum tokens of a product. For more, cuBLAS reads the weights faster."""
MAX_WEIGHTS: Final = 2**24
"""Maximum number of weights. For more, cuBLAS gains as much on the device as it costs the process."""
MAX_NORMED_TOKENS: Final = 8
"""Maximum tokens of a product with a norm. Each block norms all of them, which takes longer for more."""
MAX_WEIGHTS_ALONE: Final = 2**23
"""Maximum number of weights for a single token. Twice as many gain nothing, and MLX's own kernel reads more of them
faster."""
_INPUTS: Final = 32
"""Inputs that a warp reads at once. Those of a layer must be a multiple of them."""
_OUTPUTS: Final = 32
"""Outputs of a block."""
_WARPS: Final = 16
"""Warps of a block."""
_DTYPES: Final = (mx.float16, mx.bfloat16)
_MIN_CAPABILITY: Final = 8
"""The compute capability from which the tensor cores take 16 inputs of these types."""

_SOURCE: Final = """
constexpr int TILES = OUTPUTS / 16, GROUPS = TOKENS / 8;
__shared__ float parts[WARPS][TOKENS][16 + 4];  // four more, so that lanes write to different banks
__shared__ float norms[WARPS][TOKENS];
static_assert(sizeof parts + sizeof norms <= 48 * 1024, "more than a block of each GPU has");
int lane = threadIdx.x, warp = threadIdx.y, place = lane / 4, share = lane % 4 * 8;
int outputs = w_shape[0], inputs = w_shape[1], tokens = 1;
for (int i = 0; i < x_ndim - 1; i++) tokens *= x_shape[i];
int first = blockIdx.x * OUTPUTS, groups = (tokens + 7) / 8;
bool aligned = ((uintptr_t(x) | uintptr_t(w) | uintptr_t(norm)) & 15) == 0;
auto read = [aligned](const T* at) {
    if (aligned) return __ldg(reinterpret_cast<const uint4*>(at));
    uint4 pack;
    for (int i = 0; i < 8; i++) reinterpret_cast<T*>(&pack)[i] = at[i];
    return pack;
};
auto item = [](uint4& pack, int i) -> T& { return reinterpret_cast<T*>(&pack)[i]; };
auto add = [](float (&sum)[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t p, uint32_t q) {
    if constexpr (BRAIN)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(p), "r"(q));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(p), "r"(q));
};

bool is_normed = norm_ndim == 1;  // the weights stand for no norm
float sums[TILES][GROUPS][4] = {}, squares[GROUPS] = {};
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
    if (is_normed) {
        uint4 scales = read(norm + share + k);
        #pragma unroll
        for (int j = 0; j < GROUPS; j++)
            if (j < groups)
                #pragma unroll
                for (int i = 0; i < 8; i++) {
                    float number = float(item(b[j], i));
                    squares[j] += number * number;
                    item(b[j], i) = T(number * float(item(scales, i)));
                }
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

if (is_normed) for (int j = 0; j < GROUPS; j++) {
    squares[j] += __shfl_xor_sync(0xffffffff, squares[j], 1);
    squares[j] += __shfl_xor_sync(0xffffffff, squares[j], 2);
    if (lane % 4 == 0) norms[warp][8 * j + place] = squares[j];
}
#pragma unroll
for (int t = 0; t < TILES; t++) {
    if (t) __syncthreads();
    #pragma unroll
    for (int j = 0; j < GROUPS; j++)
        for (int i = 0; i < 4; i++)
            parts[warp][8 * j + lane % 4 * 2 + i % 2][i / 2 * 8 + place] = sums[t][j][i];
    __syncthreads();
    for (int i = warp * 32 + lane; i < tokens * 16; i += WARPS * 32) {
        int token = i / 16, output = i % 16, at = first + 16 * t + output;
        if (at >= outputs) continue;
        float sum = 0, square = 0;
        for (int j = 0; j < WARPS; j++) {
            sum += parts[j][token][output];
            if (is_normed) square += norms[j][token];
        }
        if (is_normed) sum *= rsqrtf(square / inputs + epsilon[0]);
        if (bias_ndim == 1) sum += float(bias[at]);  // the weights stand for no bias
        out[int64_t(token) * outputs + at] = T(sum);
    }
}
"""


class Norm(NamedTuple):
    """An RMS norm, as `mlx.core.fast.rms_norm` computes it."""

    weight: mx.array
    """A factor for each input."""
    epsilon: float


def replace_layers() -> None:
    """Let the kernel do the products of all linear layers that it suits, and the norms before them.

    Does nothing on other devices.
    """
    if uses_cuda() and int(mx.device_info().get("compute_capability_major", 0)) >= _MIN_CAPABILITY:
        nn.Linear.__call__ = _call_linear
        nn.RMSNorm.__call__ = _call_norm


_plain_linear: Any = nn.Linear.__call__


class _Normed(NamedTuple):
    """The output of a norm's call, and what it is computed from."""

    output: weakref.ref[mx.array]
    x: mx.array
    norm: Norm


_last_normed: list[_Normed] = []
"""The output of the last call, as long as something reads it."""


def _call_norm(self: Any, x: mx.array) -> mx.array:
    """Return a norm's output, and note what it is computed from."""
    norm = Norm(self["weight"], self.eps)
    output = mx.fast.rms_norm(x, *norm)
    if x.size <= MAX_NORMED_TOKENS * x.shape[-1]:
        _last_normed[:] = [_Normed(weakref.ref(output, lambda _: _last_normed.clear()), x, norm)]
    return output


def _call_linear(self: Any, x: mx.array) -> mx.array:
    """Return a linear layer's output.

    If the input is a norm's output, the kernel computes that too. MLX does not, unless something else reads it.
    """
    weight, bias = self["weight"], self.get("bias")
    for output, tokens, norm in _last_normed:
        if output() is x and suits_kernel(tokens, weight, bias, norm):
            return multiply(tokens, weight, bias, norm)
    return multiply(x, weight, bias) if suits_kernel(x, weight, bias) else _plain_linear(self, x)


def suits_kernel(x: mx.array, weight: mx.array, bias: mx.array | None = None, norm: Norm | None = None) -> bool:
    """Return whether `multiply` is faster than MLX, with the same type. The arguments are those of `multiply`."""
    inputs = x.shape[-1]
    tokens = x.size // inputs
    if norm is None:
        is_small = 1 < tokens <= MAX_TOKENS  # for a single token, MLX has a kernel too
    else:
        is_small = tokens <= MAX_NORMED_TOKENS and x.dtype == norm.weight.dtype == mx.bfloat16  # float16 could overflow
    return (
        is_small
        and x.dtype == weight.dtype
        and (bias is None or x.dtype == bias.dtype)
        and x.dtype in _DTYPES
        and inputs % _INPUTS == 0
        and weight.size <= (MAX_WEIGHTS if tokens > 1 else MAX_WEIGHTS_ALONE)
    )


def multiply(x: mx.array, weight: mx.array, bias: mx.array | None = None, norm: Norm | None = None) -> mx.array:
    """Return the output of a linear layer for a few tokens.

    Args:
        x: The tokens, of shape (..., inputs).
        weight: The weights, of shape (outputs, inputs).
        bias: The bias, of shape (outputs,); None without.
        norm: The norm that the tokens pass first, up to `MAX_NORMED_TOKENS`; None for none.
    """
    norm_weight, epsilon = norm or (weight, 0.0)
    run = _product(x.shape, weight.shape[0], x.dtype)
    [product] = run(x, weight, weight if bias is None else bias, norm_weight, _as_array(epsilon))
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
    inputs = ["x", "w", "bias", "norm", "epsilon"]
    return new_kernel("skinny_product", _SOURCE, inputs, dtype, **constants)


@lru_cache(64)
def _as_array(epsilon: float) -> mx.array:
    return mx.array([epsilon], mx.float32)
