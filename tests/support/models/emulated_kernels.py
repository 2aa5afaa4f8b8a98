"""CUDA kernels on a CPU: the source that MLX would compile for a GPU, compiled by the machine's C++ compiler."""

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
import numpy as np
import pytest

from lmwire_worker.models import decode_attention, skinny_product

from ..process.programs import program

_HEADER: Final = Path(__file__).with_name("cuda_emulation.h")
_TYPES: Final = {mx.float16: "__half", mx.bfloat16: "__nv_bfloat16", mx.float32: "float", mx.bool_: "bool"}
_MAX_AXES: Final = 8
_ALIGNMENT: Final = 256
"""Alignment of a GPU's memory, in bytes."""


@pytest.fixture
def cuda_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker's CUDA kernels run in a test: on a GPU, or else emulated."""
    if mx.cuda.is_available():
        return
    monkeypatch.setattr(mx.fast, "cuda_kernel", EmulatedKernel)
    monkeypatch.setattr(mx, "compile", lambda function: function)  # they need values
    for module, name in ((decode_attention, "_kernel"), (skinny_product, "_kernel"), (skinny_product, "_product")):
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)  # without its cache


class EmulatedKernel:
    """A kernel as `mlx.core.fast.cuda_kernel` returns it. It takes the same arguments, and computes at once.

    Args:
        name: The kernel's name.
        input_names: Names of its inputs.
        output_names: Names of its outputs: one.
        source: The body of its function.
        ensure_row_contiguous: False if the source reads inputs in any memory order.
    """

    def __init__(
        self, *, name: str, input_names: list[str], output_names: list[str], source: str, ensure_row_contiguous: bool
    ) -> None:
        assert name.isidentifier()
        assert output_names == ["out"]
        self._names = input_names
        self._source = source
        self._copies = ensure_row_contiguous

    def __call__(
        self,
        *,
        inputs: Sequence[mx.array],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        output_shapes: Sequence[tuple[int, ...]],
        output_dtypes: Sequence[mx.Dtype],
    ) -> list[mx.array]:
        """Return the output."""
        [dtype], [shape] = output_dtypes, output_shapes
        arrays = [(np.ascontiguousarray if self._copies else _aligned)(_to_numpy(each)) for each in inputs]
        out = _to_numpy(mx.full(shape, 7, dtype))  # what it does not write is wrong
        run = _compile(self._text([_TYPES[each.dtype] for each in inputs], _TYPES[dtype]))
        (columns, rows, _), (lanes, warps, _) = grid, threadgroup
        steps = [[step // each.itemsize for step in each.strides] for each in arrays]
        run(
            *(columns // lanes, rows // warps, warps),
            (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays)),
            _padded(ctypes.c_int, [each.shape for each in arrays]),
            _padded(ctypes.c_int64, steps),
            (ctypes.c_int * len(arrays))(*(each.ndim for each in arrays)),
            ctypes.c_void_p(out.ctypes.data),
        )
        return [mx.array(out).view(dtype)]

    def _text(self, types: Sequence[str], out_type: str) -> str:
        """Return a program with the function `run`, which computes the kernel for inputs of these types."""
        head = [
            f"""const {kind}* {name} = (const {kind}*)data[{index}];
            Shape {name}_shape{{sizes + {_MAX_AXES * index}}};
            Strides {name}_strides{{steps + {_MAX_AXES * index}}};
            int {name}_ndim = axes[{index}];"""
            for index, (name, kind) in enumerate(zip(self._names, types, strict=True))
        ]
        return f"""#include "{_HEADER}"
        extern "C" void run(
            int columns, int rows, int warps, void** data, int* sizes, int64_t* steps, int* axes, {out_type}* out
        ) {{
            emulation::launch(columns, rows, warps, [=] {{
                {" ".join(head)}
                {self._source}
            }});
        }}"""


def _to_numpy(array: mx.array) -> Any:
    """Return an array's memory. NumPy has no bfloat16, so its numbers come as their bits."""
    return np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array, copy=None)


def _aligned(array: Any) -> Any:
    """Return a copy with the same strides. It begins where a GPU's memory does, so that vectors can be read there."""
    extent = array.itemsize + sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True))
    memory = np.empty(extent + _ALIGNMENT, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, memory, -memory.ctypes.data % _ALIGNMENT, array.strides)
    copy[...] = array
    return copy


def _padded(kind: Any, rows: Sequence[Sequence[int]]) -> Any:
    """Return numbers as one C array, with as many places for each row."""
    return (kind * (_MAX_AXES * len(rows)))(
        *(number for row in rows for number in [*row, *[0] * _MAX_AXES][:_MAX_AXES])
    )


@lru_cache
def _compile(text: str) -> Any:
    """Return the function `run` of a program."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        source.write_text(text)
        command = [program("c++"), "-std=c++20", "-O1", "-w", "-fPIC", "-shared", "-o", library, source]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library)).run
