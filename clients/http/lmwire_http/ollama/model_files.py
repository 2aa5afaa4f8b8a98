"""Read what a model's files say beyond its config.json: the number of its parameters, their type, and the licence."""

import math
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

_MAX_HEADER_BYTES: Final = 32 * 1024 * 1024
_MAX_TEXT_BYTES: Final = 256 * 1024
"""Longest text of a licence, or of a model card, in bytes. Of others the beginning is read."""
_MAX_FILES: Final = 512
_PACKED: Final = "U32"
"""Type of the words that hold quantized weights."""
_SCALES: Final = ".scales"
_BIASES: Final = ".biases"
"""End of the names of tensors that only serve quantized weights, as `.scales` is."""
_GROUP_SIZE: Final = 64
"""Weights that share a scale where config.json does not say how many: MLX's default."""
_LICENCES: Final = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")
_CARD_LICENCE: Final = re.compile(r"^license:([^\n]+)$", re.MULTILINE)


class _Tensor(Struct):
    """A tensor in the header of a file."""

    dtype: str
    shape: Annotated[list[Annotated[int, Meta(ge=0, lt=2**53)]], Meta(max_length=16)]


class _Module(Struct):
    """Quantization of one module, where that differs."""

    group_size: int = _GROUP_SIZE


class _Config(Struct):
    """The part of config.json that describes quantized weights."""

    quantization: dict[str, _Module | int | float | str | bool | None] = {}
    """`group_size`, and by name the modules that differ."""


class Weights(Struct, frozen=True):
    """The weights of a model."""

    parameters: int = 0
    """Number of weights; 0 if unknown."""
    type: str = ""
    """The type that most tensors have, such as `BF16`; empty if unknown or if they are quantized."""


_decode: Final = msgspec.json.Decoder(_Tensor).decode
_decode_config: Final = msgspec.json.Decoder(_Config).decode


@lru_cache(maxsize=1024)
def read_weights(path: str, bits: int | None, created: int) -> Weights:
    """Return what the headers of a folder's weights say; what is unknown is empty.

    Args:
        path: The model folder.
        bits: Bits of most quantized weights; None if the weights are not quantized.
        created: Time of the files, with which the result changes.
    """
    del created
    parameters: int = 0
    types: Counter[str] = Counter()
    group_size = _read_group_sizes(Path(path))
    try:
        for file in sorted(Path(path).glob("*.safetensors"))[:_MAX_FILES]:
            for name, tensor in _read_tensors(file).items():
                count = math.prod(tensor.shape)
                if bits and name.endswith(_SCALES):  # some weights may have more bits than most
                    parameters += count * group_size(name.removesuffix(_SCALES))
                elif not (bits and (tensor.dtype == _PACKED or name.endswith(_BIASES))):
                    parameters += count
                    types[tensor.dtype] += count
    except (OSError, ValueError):  # it may be on the worker's machine
        return Weights()
    return Weights(parameters, "" if bits or not types else types.most_common(1)[0][0])


def _read_group_sizes(folder: Path) -> Callable[[str], int]:
    """Return a function from a module's name to the number of its weights that share a scale."""
    try:
        modules = _decode_config((folder / "config.json").read_bytes()).quantization
    except (OSError, ValueError):
        modules = {}
    usual = modules.get("group_size")

    def of(module: str) -> int:
        size = own.group_size if isinstance(own := modules.get(module), _Module) else usual
        return size if isinstance(size, int) else _GROUP_SIZE

    return of


def _read_tensors(file: Path) -> dict[str, _Tensor]:
    if not file.is_file():  # such as a pipe, which has no end
        raise ValueError(f"{file} is not a file")
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > _MAX_HEADER_BYTES:
            raise ValueError(f"the header of {file} is too long")
        header = msgspec.json.decode(opened.read(length), type=dict[str, msgspec.Raw])
    header.pop("__metadata__", None)
    return {name: _decode(raw) for name, raw in header.items()}


def read_licence(path: str) -> str:
    """Return the licence of a model folder: its text, or its name in the model card; empty without either."""
    folder = Path(path)
    try:
        for name in _LICENCES:
            if (folder / name).is_file():
                return _read_text(folder / name)
        start, front, rest = _read_text(folder / "README.md").partition("---\n")
    except OSError:
        return ""
    facts, end, _ = rest.partition("\n---\n")
    found = _CARD_LICENCE.search(facts) if front and end and not start else None
    return found[1].strip() if found else ""


def _read_text(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MAX_TEXT_BYTES).decode(errors="replace").replace("\r\n", "\n")


def short_number(count: int) -> str:
    """Return a number of parameters as Ollama writes it, such as `7.6B`; empty for 0."""
    for unit, size, digits in (("B", 10**9, 1), ("M", 10**6, 2), ("K", 10**3, 0)):
        if count >= size:
            return f"{count // size}{unit}" if count % size == 0 else f"{count / size:.{digits}f}{unit}"
    return str(count) if count else ""
