"""Read a model's weights into memory, lay them out, and measure them."""

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten, tree_map_with_path

from lmwire_protocol import RequestError
from lmwire_protocol.events import Quantization

from ..engine.interface import Report

READ_BYTES: Final = 256 * 2**20
"""Bytes read between two reports. A cancel waits for the next report."""
_CPU_READ_BYTES: Final = 2 * 2**20
"""The same on a CPU. `store_transposed` copies a weight after it was read, and the next ones are read into the memory
that becomes free: to get fresh memory takes longer than the copy."""
_CONVERTED: Final = (
    "float16 becomes float32, which doubles its size: a CPU computes quantized models many times slower in float16. "
    "`dtype` of the load (--dtype) chooses otherwise: bfloat16 keeps the size, and float16 changes nothing"
)
"""Log line for a load whose float16 was converted."""


def read_weights(
    network: nn.Module, folder: Path, report: Report, loaded: nn.Module | None = None, *, singly: bool = False
) -> None:
    """Read a network's weights into memory, except those that it shares with `loaded`.

    Args:
        network: The network.
        folder: The model folder, for the error.
        report: Receives the progress.
        loaded: Modules whose weights are in memory; None for none.
        singly: Read one weight at a time, because each is a part of a larger one, which is read whole.

    Raises:
        RequestError: bad_model.
        LoadCancelled: from `report`.
    """
    mx.eval(mx.random.state)  # modules drew their first weights, and a state that is not evaluated keeps every draw
    there = set() if loaded is None else {id(weight) for weight in _weights(loaded)}
    weights = [weight for weight in _weights(network) if id(weight) not in there]
    total = sum(weight.nbytes for weight in weights)
    done = 0
    most = _CPU_READ_BYTES if mx.default_device() == mx.cpu else READ_BYTES
    for group in _groups(weights, 1 if singly else most):
        report("read", done, total, "bytes")
        try:
            mx.eval(group)
        except BaseException as error:
            raise RequestError(
                "bad_model", f"the weights of {folder} cannot be read: {summarize_exception(error)}"
            ) from None
        done += sum(weight.nbytes for weight in group)
        report("read", done, total, "bytes")


@contextmanager
def checked_quantization() -> Iterator[None]:
    """Turn a group size of 0 into an error: MLX would divide by it, and several config fields can lead to it."""
    quantize = mx.quantize

    def checked(array: mx.array, group_size: int | None = None, *arguments: Any, **options: Any) -> Any:
        if group_size is not None and group_size < 1:
            raise ValueError(f"a weight would be quantised in groups of {group_size}")
        return quantize(array, group_size, *arguments, **options)

    mx.quantize = checked
    try:
        yield
    finally:
        mx.quantize = quantize


# The layout of weights.
#
# MLX's package for Linux brings the reference BLAS. Its product with a transposed matrix waits for each addition before
# the next one. A layer multiplies by its transposed weights, so they are stored transposed, and the product reads them
# as they are. It takes half of the time, and every sum keeps its order; only a bias is added first instead of last.
# OpenBLAS takes the same time either way.


def store_transposed(network: nn.Module) -> None:
    """Store the weights of a network transposed on a Linux CPU. Evaluates nothing, so they need not be read yet.

    They keep their names, shapes and numbers; only their strides change. Other types than float32 keep their layout,
    since MLX multiplies them without BLAS. So should models that speak: they draw sounds from the rounded numbers.

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
    """Return whether a module may multiply by its transposed weight.

    Linear layers do, and embeddings that are tied. In an embedding that is not, a lookup costs some microseconds more.
    """
    kind = type(module).__name__
    return weight.ndim in (2, 3) and kind != "MultiLinear" and ("Linear" in kind or "Embedding" in kind)


# The size of weights.


def weights_bytes(network: nn.Module) -> int:
    """Return the size of a model's weights in memory."""
    return sum(weight.nbytes for weight in _weights(network))


def quantization(config: dict[str, Any]) -> Quantization | None:
    """Return the quantization in a config.json; None without one."""
    settings = config.get("quantization") or {}
    bits, group_size = settings.get("bits"), settings.get("group_size")
    return Quantization(bits, group_size) if isinstance(bits, int) and isinstance(group_size, int) else None


def summarize_exception(error: BaseException) -> str:
    """Return an exception as one short line: its message may list the weights of a whole model."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}{' …' if len(text) > 300 else ''}"


def _weights(network: nn.Module) -> list[mx.array]:
    leaves: Any = tree_flatten(network.parameters())
    return [weight for _, weight in leaves]


def _groups(weights: list[mx.array], bytes: int) -> Iterator[list[mx.array]]:
    group: list[mx.array] = []
    size = 0
    for weight in weights:
        group.append(weight)
        size += weight.nbytes
        if size >= bytes:
            yield group
            group, size = [], 0
    if group:
        yield group


# Weights that loads share, so that another adapter or other options need no second read.

Files = list[tuple[str, int, int]]


class SharedWeights:
    """The modules of a model, which never run. The networks that run are copies, and share the weights.

    So nothing has to be undone when an adapter is removed: it was added to a copy. Some models even store compiled
    functions, with their weights, in their modules.

    Args:
        folder: The model folder.
        files: The folder's files when they were read.
        network: The modules.
        config: The config.json, as mlx-lm completes it.
    """

    def __init__(self, folder: Path, files: Files, network: nn.Module, config: dict[str, Any]) -> None:
        self.folder = folder
        self.config = config
        self.dtype: str | None = None
        """The type that the load asked for; None for the one that is best here."""
        self._files = files
        self._network = network

    def new_network(self) -> nn.Module:
        """Return a network to run or to change. Copies no weights."""
        return _copy_modules(self._network, {})

    def modules(self) -> nn.Module:
        """Return the shared modules. They must not be changed."""
        return self._network

    def cast(self, dtype: str | None) -> None:
        """Give the numbers that are not quantized another type. Evaluates nothing, so they need not be read yet.

        Args:
            dtype: The type's name. None converts float16 to float32 on a CPU, where float16 takes 50 times as long.
        """
        self.dtype = dtype
        if dtype is None and (
            mx.default_device() != mx.cpu or all(weight.dtype != mx.float16 for weight in _weights(self._network))
        ):
            return
        if dtype is None:
            print(f"lmwire: {self.folder}: {_CONVERTED}", file=sys.stderr)
        target = getattr(mx, dtype or "float32")
        may_cast: Any = getattr(self._network, "cast_predicate", lambda _: True)

        def convert(name: str, weight: mx.array) -> mx.array:
            return weight.astype(target) if mx.issubdtype(weight.dtype, mx.floating) and may_cast(name) else weight

        self._network.update(tree_map_with_path(convert, self._network.parameters()))

    def matches(self, folder: Path, dtype: str | None) -> bool:
        """Return whether a folder is the same, with unchanged files, and its numbers have the type of a load."""
        return self.folder == folder and self.dtype == dtype and self._files == list_files(folder)


def list_files(folder: Path) -> Files:
    """Return the name, size and modification time of each file. They change if the model is replaced."""
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _copy_modules(value: Any, copies: dict[int, Any]) -> Any:
    """Return a copy of modules and their containers. A module in two places stays one module."""
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, dict):  # a module is one
        copied = copies[id(value)] = copy.copy(value)
        for key, part in value.items():
            copied[key] = _copy_modules(part, copies)
        return copied
    if isinstance(value, list | tuple):
        parts = [_copy_modules(part, copies) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value
