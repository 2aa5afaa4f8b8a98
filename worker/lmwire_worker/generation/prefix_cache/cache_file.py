"""Cache files: safetensors, with a description of the arrays in the header; and the directory that holds them.

A file names no classes and contains no code. Its name contains a checksum of its bytes, to detect damage.
"""

import contextlib
import json
import os
import re
import stat
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import mlx.core as mx

from ..caches import Slices

FORMAT: Final = "lmwire prefix cache 1"
FILE_NAME: Final = re.compile(r"[0-9a-f]{32}-([0-9a-f]{8})\.safetensors")
TEMPORARY_NAME: Final = re.compile(r"writing-[0-9]+-[0-9a-f]{32}\.safetensors")
MAX_HEADER_BYTES: Final = 64 * 2**20
_CHUNK_BYTES: Final = 2**20


class ForeignFileError(Exception):
    """A file that is damaged, or that this program did not write for this model."""


@dataclass(frozen=True)
class Header:
    """The description of a file's content.

    Args:
        fingerprint: Hash of everything that the content depends on.
        tokens: All tokens of the sequence.
        start: Index of the first token of the slices.
        snapshot: The state after the last token of each layer that cannot be sliced, in the form of `pack`; None if
            all layers can be sliced.
    """

    fingerprint: str
    tokens: list[int]
    start: int
    snapshot: list[Any] | None

    def metadata(self) -> dict[str, str]:
        """Return the header as safetensors metadata."""
        held = {"tokens": self.tokens, "start": self.start, "snapshot": self.snapshot}
        return {"format": FORMAT, "fingerprint": self.fingerprint, "held": json.dumps(held)}


@dataclass
class PackedArrays:
    """The arrays of a file, by name."""

    arrays: dict[str, mx.array] = field(default_factory=dict)

    def pack(self, state: Any) -> Any:
        """Add the arrays of a cache's state, and return the state with names in place of the arrays.

        Raises:
            TypeError: the state contains something other than arrays, numbers and sequences of them.
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
        """Return the state that `pack` received."""
        if isinstance(packed, str):
            return self.arrays[packed]
        return [self.unpack(part) for part in packed] if isinstance(packed, list) else packed

    def add(self, slices: Slices) -> None:
        """Add slices."""
        for layer, arrays in enumerate(slices):
            self.arrays |= {f"layer.{layer}.{index}": array for index, array in enumerate(arrays)}

    def slices(self, tokens: int) -> Slices:
        """Return the slices, which must have `tokens` tokens."""
        layers: dict[int, dict[int, mx.array]] = {}
        for name, array in self.arrays.items():
            if name.startswith("layer."):
                layer, index = map(int, name.split(".")[1:])
                layers.setdefault(layer, {})[index] = array
                if array.shape[-2] != tokens:
                    raise ForeignFileError("its arrays are not of as many tokens as it says")
        return [[arrays[index] for index in range(len(arrays))] for _, arrays in sorted(layers.items())]


def write(folder: Path, stem: str, header: Header, arrays: dict[str, mx.array]) -> Path:
    """Write a file atomically, and return its path.

    Args:
        folder: The folder of the model's files.
        stem: The beginning of the file's name.
        header: The description of the content.
        arrays: The content.

    Raises:
        OSError, RuntimeError: it cannot be written. MLX raises the second.
    """
    temporary = folder / f"writing-{os.getpid()}-{stem}.safetensors"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # other users may never read it
        mx.save_safetensors(str(temporary), arrays, header.metadata())
        path = folder / f"{stem}-{_checksum(temporary)}.safetensors"
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def read_header(path: Path, fingerprint: str) -> Header:
    """Return the header of a file. Reads nothing else.

    Args:
        path: The file.
        fingerprint: The fingerprint that the file must have.

    Raises:
        OSError: it cannot be read.
        ForeignFileError: it is damaged, or of another model or user.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            raise ForeignFileError("it belongs to another user")
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
    """Return the header and the arrays of a file.

    Args:
        path: The file.
        fingerprint: The fingerprint that the file must have.

    Raises:
        OSError, RuntimeError: it cannot be read.
        ForeignFileError: it is damaged, or of another model or user.
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


# The directory of the files of all models: its permissions, and its size.

ABANDONED_AFTER_S: Final = 3600.0
"""Age at which a temporary file is deleted, in seconds: its writer has crashed."""


def make_private(folder: Path) -> Path:
    """Create a folder that only this user can access.

    Raises:
        OSError: it cannot be created.
        ForeignFileError: it exists, and other users can access it.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise ForeignFileError(f"{folder} is not this user's alone; remove it, or name another directory")
    return folder


def shrink(directory: Path, budget_bytes: int) -> set[Path]:
    """Delete the least recently used files of all models beyond a budget, and return them.

    Args:
        directory: The directory of all models.
        budget_bytes: Maximum size of the files.
    """
    files = sorted(_files(directory))
    total = sum(size for _, size, _ in files)
    removed: set[Path] = set()
    for _, size, path in files:
        if total <= budget_bytes:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
        removed.add(path)
    return removed


def _files(directory: Path) -> list[tuple[float, int, Path]]:
    """Return (last use, size, path) of all complete files, and delete abandoned temporary files."""
    files: list[tuple[float, int, Path]] = []
    for path in directory.glob(f"{'[0-9a-f]' * 32}/*.safetensors"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if TEMPORARY_NAME.fullmatch(path.name) and status.st_mtime < time.time() - ABANDONED_AFTER_S:
                path.unlink()
            elif FILE_NAME.fullmatch(path.name):
                files.append((status.st_mtime, status.st_size, path))
    return files
