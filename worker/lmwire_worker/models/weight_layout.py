"""Lay weights out as the CPU's matrix products read them fastest.

MLX's package for Linux brings the reference BLAS. Its product with a transposed matrix waits for each addition before
the next one. A layer multiplies by its transposed weights, so they are stored transposed, and the product reads them as
they are. It takes half of the time, and every sum keeps its order; only a bias is added first instead of last. OpenBLAS
takes the same time either way. Models that speak keep their layout: they draw each sound from the rounded numbers.
"""

import sys
from typing import Any

import mlx.core as mx
from mlx import nn


def store_transposed(network: nn.Module) -> None:
    """Store the weights of a network transposed on a Linux CPU. Evaluates nothing, so they need not be read yet.

    They keep their names, shapes and numbers; only their strides change. Other types than float32 keep their layout,
    since MLX multiplies them without BLAS.

    Args:
        network: The network, which is changed. Ranks split theirs before.
    """
    if sys.platform != "linux" or mx.default_device() != mx.cpu:
        return
    modules: list[Any] = network.modules()
    for module in modules:
        weight = module.get("weight")
        if isinstance(weight, mx.array) and weight.dtype == mx.float32 and _multiplies_transposed(module, weight):
            module.weight = mx.contiguous(weight.swapaxes(-1, -2)).swapaxes(-1, -2)


def _multiplies_transposed(module: nn.Module, weight: mx.array) -> bool:
    """Return whether a module multiplies by its transposed weight, as linear layers and tied embeddings do."""
    kind = type(module).__name__
    return weight.ndim in (2, 3) and kind != "MultiLinear" and ("Linear" in kind or "Embedding" in kind)
