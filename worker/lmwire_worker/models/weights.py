"""Read a model's weights into memory, and measure them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten

from lmwire_protocol import RequestError
from lmwire_protocol.events import Quantization

from ..engine.interface import Report

READ_BYTES: Final = 256 * 2**20
"""Bytes read between two reports. A cancel waits for the next report."""


def read_weights(network: nn.Module, folder: Path, report: Report, loaded: nn.Module | None = None) -> None:
    """Read a network's weights into memory, except those that it shares with `loaded`.

    Args:
        network: The network.
        folder: The model folder, for the error.
        report: Receives the progress.
        loaded: Modules whose weights are in memory; None for none.

    Raises:
        RequestError: bad_model.
        LoadCancelled: from `report`.
    """
    mx.eval(mx.random.state)  # modules drew their first weights, and a state that is not evaluated keeps every draw
    there = set() if loaded is None else {id(weight) for weight in _weights(loaded)}
    weights = [weight for weight in _weights(network) if id(weight) not in there]
    total = sum(weight.nbytes for weight in weights)
    done = 0
    for group in _groups(weights):
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


def _groups(weights: list[mx.array]) -> Iterator[list[mx.array]]:
    group: list[mx.array] = []
    size = 0
    for weight in weights:
        group.append(weight)
        size += weight.nbytes
        if size >= READ_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
