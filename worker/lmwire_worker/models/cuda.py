"""CUDA: whether networks run on it, and how lmwire's own kernels for it are made.

MLX compiles each kernel at its first use in a process, which takes about a second, and keeps none of them on the disk.
So they are few, and what differs between layers is an argument.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import mlx.core as mx

LANES: Final = 32
"""Threads of a warp."""
_TYPES: Final = {mx.float16: "__half", mx.bfloat16: "__nv_bfloat16", mx.float32: "float"}


def uses_cuda() -> bool:
    """Return whether networks run on CUDA."""
    return mx.default_device() == mx.gpu and mx.cuda.is_available()


def new_kernel(
    name: str, source: str, inputs: Sequence[str], dtype: mx.Dtype, *, any_order: bool = False, **constants: int
) -> Callable[..., list[mx.array]]:
    """Return a kernel with one output, `out`.

    The constants are a part of the source: MLX takes long to read them as arguments of each call.

    Args:
        name: The kernel's name.
        source: The body of its function.
        inputs: Names of its inputs.
        dtype: The type that the source calls `T`.
        any_order: The source reads inputs in any memory order. MLX copies them otherwise.
        constants: Other names that the source uses.
    """
    head = [f"using T = {_TYPES[dtype]};", *(f"constexpr int {key} = {value:d};" for key, value in constants.items())]
    lines = [*head, *(line.strip() for line in source.splitlines())]  # MLX hashes all of it at each call
    kernel: Any = mx.fast.cuda_kernel(
        name=name,
        input_names=list(inputs),
        output_names=["out"],
        source="\n".join(lines),
        ensure_row_contiguous=not any_order,
    )
    return kernel
