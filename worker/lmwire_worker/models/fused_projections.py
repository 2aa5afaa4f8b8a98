"""Fuse the linear layers of a module that read one input: q, k and v, or gate and up.

On CUDA, the start of a multiplication takes longer than its arithmetic while a batch is small. A fused layer starts one
for all of its parts. The modules of the model stay as they are: the first part that is called computes all of them, and
the others take their outputs.
"""

import copy
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import mlx.core as mx
from mlx import nn

from .cuda import uses_cuda

NAMES: Final = (
    ("q_proj", "k_proj", "v_proj"),
    ("gate_proj", "up_proj"),
    ("w1", "w3"),
    ("q_a_proj", "kv_a_proj_with_mqa"),
    ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"),
    ("in_proj_qkvz", "in_proj_ba"),
)
"""Names of layers that read one input, in the modules of mlx-lm. A module may lack some of them."""
_ARRAYS: Final = ("weight", "scales", "biases", "bias")
"""The parameters of linear layers, plain or quantized. The outputs are the first axis of each."""


def fusing_is_faster() -> bool:
    """Return whether fused projections are faster on this device. They were measured on CUDA alone."""
    return uses_cuda()


def fuse_projections(network: nn.Module) -> None:
    """Fuse the projections of a network. Evaluates nothing, so the weights need not be read yet.

    The parameters keep their names and shapes: each is a part of a fused array, and takes no further memory.

    Args:
        network: The network, which is changed. An adapter may be added later, not before.
    """
    modules: list[nn.Module] = network.modules()
    for module in modules:
        for layers in _groups(module):
            fused = _FusedLayers([layer for _, layer in layers])
            for index, (name, layer) in enumerate(layers):
                part = _QuantizedPart if isinstance(layer, nn.QuantizedLinear) else _LinearPart
                setattr(module, name, part(layer, fused, index))


def _groups(module: nn.Module) -> Iterator[list[tuple[str, Any]]]:
    """Yield the layers of a module that can be fused, with their names."""
    for names in NAMES:
        layers = [(name, module[name]) for name in names if name in module]
        if len(layers) > 1 and len({_form(layer) for _, layer in layers}) == 1 and _form(layers[0][1]) is not None:
            yield layers


def _form(layer: Any) -> tuple[Any, ...] | None:
    """Return what layers must have in common to be fused; None for a layer of another kind."""
    if type(layer) not in (nn.Linear, nn.QuantizedLinear) or not {*layer} <= {*_ARRAYS}:
        return None
    arrays = [(name, layer[name].shape[1:], layer[name].dtype) for name in _ARRAYS if layer.get(name) is not None]
    quantization = [getattr(layer, name, None) for name in ("group_size", "bits", "mode")]
    return (type(layer), *arrays, *quantization)


class _FusedLayers:
    """Layers as one layer, and the outputs that the parts have not taken yet.

    Args:
        layers: The layers. Their parameters become parts of the fused ones.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self._layer = copy.copy(layers[0])
        self._ends = [*accumulate(layer["weight"].shape[0] for layer in layers)][:-1]
        for name in _ARRAYS:
            if layers[0].get(name) is not None:
                whole = mx.concatenate([layer[name] for layer in layers])
                self._layer[name] = whole
                for layer, part in zip(layers, mx.split(whole, self._ends), strict=True):
                    layer[name] = part
        self._input: mx.array | None = None
        self._outputs: dict[int, mx.array] = {}
        self._is_whole = True
        """False once a part was not called with the input of the others."""

    def take(self, part: int, input: mx.array) -> mx.array | None:
        """Return the output of a part; None if the layers are called with different inputs, so each works alone.

        Args:
            part: The part's index.
            input: The input, which is compared by identity.
        """
        if self._input is not input and self._is_whole:
            self._is_whole = not self._outputs
            self._outputs.clear()
            if self._is_whole:
                self._input = input
                self._outputs = dict(enumerate(mx.split(self._layer(input), self._ends, axis=-1)))
        output = self._outputs.pop(part, None)
        if not self._outputs:
            self._input = None  # that of a long prompt would stay in memory
        return output


class _Part(nn.Module):
    """A layer whose output a fused one computes, with views of its parameters.

    Args:
        layer: The layer.
        fused: The fused layer.
        index: The layer's place in it.
    """

    def __init__(self, layer: nn.Module, fused: _FusedLayers, index: int) -> None:
        self.__dict__.update(layer.__dict__)
        dict.update(self, layer)  # the parameters: a module's own `update` expects those that it has
        self._fused = fused
        self._index = index

    def __call__(self, x: mx.array) -> mx.array:
        """Return the layer's output."""
        output = self._fused.take(self._index, x)
        alone: Any = super()
        return alone.__call__(x) if output is None else output


class _LinearPart(_Part, nn.Linear):
    """A part that is an adapter's base, as any linear layer is."""


class _QuantizedPart(_Part, nn.QuantizedLinear):
    """The same with quantized weights."""
