"""One file of the cache on disk: arrays in the safetensors format, with what they are of in its header.

A file names no class and holds no code. The checksum of its bytes is in its name, so that damage is found.
"""

import json
import os
import re
import stat
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import mlx.core as mx

from .radix_tree import Slices

FORMAT: Final = "lmwire prefix cache 1"
FILE_NAME: Final = re.compile(r"[0-9a-f]{32}-([0-9a-f]{8})\.safetensors")
TEMPORARY_NAME: Final = re.compile(r"writing-[0-9]+-[0-9a-f]{32}\.safetensors")
MAX_HEADER_BYTES: Final = 64 * 2**20
_CHUNK_BYTES: Final = 2**20


class ForeignFileError(Exception):
    """A file that this program did not write for this model, or that is damaged."""


@dataclass(frozen=True)
class Header:
    """What a file holds.

    Args:
        fingerprint: Of all that what it holds depends on.
        tokens: From the first one of the sequence on.
        start: The slices are those of the tokens from here on.
        snapshot: Of each layer that cannot be cut its state behind the last token, as `pack` makes it; None when all
            can be cut.
    """

    fingerprint: str
    tokens: list[int]
    start: int
    snapshot: list[Any] | None

    def metadata(self) -> dict[str, str]:
        """As strings."""
        held = {"tokens": self.tokens, "start": self.start, "snapshot": self.snapshot}
        return {"format": FORMAT, "fingerprint": self.fingerprint, "held": json.dumps(held)}


@dataclass
class PackedArrays:
    """Arrays by the names that they have in a file."""

    arrays: dict[str, mx.array] = field(default_factory=dict)

    def pack(self, state: Any) -> Any:
        """A cache's state, with names in the places of its arrays.

        Raises:
            TypeError: it holds something else than arrays, numbers and sequences of them.
        """
        if isinstance(state, mx.array):
            self.arrays[name := f"state.{len(self.arrays)}"] = state
            return name
        if isinstance(state, list | tuple):
            return [self.pack(part) for part in state]
        if state is None or isinstance(state, bool | int | float):
            return state
        raise TypeError(f"a cache keeps a {type(state).__name__}")

    def unpack(self, packed: Any) -> Any:
        """What `pack` was given."""
        if isinstance(packed, str):
            return self.arrays[packed]
        return [self.unpack(part) for part in packed] if isinstance(packed, list) else packed

    def add(self, slices: Slices) -> None:
        """Takes slices in."""
        for layer, arrays in enumerate(slices):
            self.arrays |= {f"layer.{layer}.{index}": array for index, array in enumerate(arrays)}

    def slices(self, tokens: int) -> Slices:
        """The slices that were taken in, which are those of so many tokens."""
        layers: dict[int, dict[int, mx.array]] = {}
        for name, array in self.arrays.items():
            if name.startswith("layer."):
                layer, index = map(int, name.split(".")[1:])
                layers.setdefault(layer, {})[index] = array
                if array.shape[-2] != tokens:
                    raise ForeignFileError("its arrays are not of as many tokens as it says")
        return [[arrays[index] for index in range(len(arrays))] for _, arrays in sorted(layers.items())]


def write(folder: Path, stem: str, header: Header, arrays: dict[str, mx.array]) -> Path:
    """Writes a file, all at once or not at all, and returns its path.

    Raises:
        OSError, RuntimeError: the second is MLX's for the first.
    """
    temporary = folder / f"writing-{os.getpid()}-{stem}.safetensors"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # nobody else ever may read it
        mx.save_safetensors(str(temporary), arrays, header.metadata())
        path = folder / f"{stem}-{_checksum(temporary)}.safetensors"
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def read_header(path: Path, fingerprint: str) -> Header:
    """A file's header, and nothing else of it.

    Raises:
        OSError: it cannot be read.
        ForeignFileError: it is not to be read.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            raise ForeignFileError("it is no file of this user")
        length = int.from_bytes(file.read(8), "little")
        if length > min(MAX_HEADER_BYTES, status.st_size - 8):
            raise ForeignFileError("it is damaged")
        text = file.read(length)
    try:
        fields = json.loads(text)
        metadata = fields.pop("__metadata__")
        if metadata["format"] != FORMAT or metadata["fingerprint"] != fingerprint:
            raise ForeignFileError("it is of another model, or of other versions")
        end = max((entry["data_offsets"][1] for entry in fields.values()), default=0)
        if 8 + length + end != status.st_size:
            raise ForeignFileError("it is not whole")
        header = Header(fingerprint, **json.loads(metadata["held"]))
        if not all(type(token) is int for token in header.tokens) or not 0 <= header.start <= len(header.tokens):
            raise ForeignFileError("it is damaged")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ForeignFileError("it is damaged") from error
    return header


def read(path: Path, fingerprint: str) -> tuple[Header, PackedArrays]:
    """All of a file, in memory.

    Raises:
        OSError, RuntimeError: it cannot be read.
        ForeignFileError: it is not to be read.
    """
    header = read_header(path, fingerprint)
    named = FILE_NAME.fullmatch(path.name)
    if named is None or named[1] != _checksum(path):
        raise ForeignFileError("its checksum is wrong")
    arrays: Any = mx.load(str(path))
    mx.eval(arrays)
    return header, PackedArrays(arrays)


def _checksum(path: Path) -> str:
    value = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            value = zlib.crc32(chunk, value)
    return f"{value:08x}"
