"""Check the files of a model folder, before the current model is released and before any weight is read."""

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from .config_check import Tensors, check_config
from .model_files import CONFIG, MAX_HEADER_BYTES, bad_model, check_entries, open_file, read_json, shown
from .remote_code import untrusted_code_error
from .settings_check import check_settings

DTYPE_BITS: Final = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
MAX_DIMENSION: Final = 2**31 - 1
"""Maximum size of a dimension: MLX uses 32-bit integers."""
MAX_DIMENSIONS: Final = 16
"""Most dimensions of a tensor; those of models have at most 5."""
MAX_TENSORS: Final = 1_000_000
"""Most tensors of a model; the largest models have some 200,000."""
_SHARD: Final = re.compile(r"(.*)-\d+-of-\d+\.safetensors", re.DOTALL)
TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer.model", "vocab.json", "*.tiktoken", "tokenizer_config.json")


def check_folder(folder: Path, *, trust_remote_code: bool) -> dict[str, Any]:
    """Check a model's files, and return its config.json.

    Args:
        folder: The model folder.
        trust_remote_code: Whether the folder's Python files may run.

    Raises:
        RequestError: bad_model, unsupported.
    """
    config = check_files(folder)
    if config.get("model_file") is not None and not trust_remote_code:
        raise untrusted_code_error(f"{folder} brings its own code ({shown(config['model_file'])})")
    return config


def check_files(folder: Path) -> dict[str, Any]:
    """Check that a model's files are complete and undamaged, and return its config.json.

    Raises:
        RequestError: bad_model.
    """
    config = read_json(folder / CONFIG)
    if config.get("model_type") is None:
        raise bad_model(folder / CONFIG, "names no model_type")
    check_entries(folder)
    check_settings(folder, config)
    _check_index(folder)
    if not any(folder.glob("model*.safetensors")):
        others = sorted(path.name for path in folder.iterdir() if path.suffix in (".safetensors", ".bin", ".gguf"))
        hint = f" (only {', '.join(others[:3])}; convert the model with mlx_lm.convert)" if others else ""
        raise bad_model(folder, f"has no weights: no file model*.safetensors{hint}")
    check_config(folder / CONFIG, config, check_weights(folder))
    if not any(any(folder.glob(pattern)) for pattern in TOKENIZER_FILES):
        raise bad_model(folder, "has no tokenizer: no tokenizer.json, tokenizer.model or vocab.json")
    return config


def check_weights(folder: Path) -> Tensors:
    """Check all safetensors files of a folder, and of the folders in it, and return the shapes of their tensors.

    Raises:
        RequestError: bad_model.
    """
    tensors: Tensors = {}
    sets: dict[tuple[Path, str], Tensors] = {}
    for pattern in ("*.safetensors", "*/*.safetensors"):
        for path in sorted(folder.glob(pattern)):
            found = check_safetensors(path)
            if shard := _SHARD.fullmatch(path.name):
                others = sets.setdefault((path.parent, shard[1]), {})
                if twice := next((name for name in found if name in others), None):
                    raise bad_model(path, f"has the tensor {shown(twice)}, which another file of the same set has too")
                others.update(found)
            tensors.update(found)
            if len(tensors) > MAX_TENSORS:
                raise bad_model(folder, f"has more than {MAX_TENSORS:,} tensors")
    return tensors


def check_safetensors(path: Path) -> Tensors:
    """Compare a file's size with what its header says, and return its tensors' shapes. Reads no weights.

    The tensors fill the file, one after another: the format allows neither gaps nor tensors that share bytes.

    Raises:
        RequestError: bad_model.
    """
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
                raise bad_model(path, f"is truncated or no safetensors file: its {size} bytes do not hold its header")
            header = json.loads(file.read(length), object_pairs_hook=_unique)
        header.pop("__metadata__", None)
        places = sorted((*_place(name, tensor), name) for name, tensor in header.items())
    except OSError as error:
        raise bad_model(path, f"cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        raise bad_model(path, f"has a damaged header: {error}") from None
    end = _end_of_tensors(path, places)
    expected = 8 + length + end
    if size != expected:
        raise bad_model(path, f"has {size} bytes where its header says {expected}; fetch it again")
    return {name: tuple(tensor["shape"]) for name, tensor in header.items()}


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these members. Libraries differ in which of two with the same name they take."""
    found = dict(members)
    if len(found) < len(members):
        ((twice, _),) = Counter(name for name, _ in members).most_common(1)
        raise ValueError(f"it has {shown(twice)} twice")
    return found


def _check_index(folder: Path) -> None:
    path = folder / "model.safetensors.index.json"
    if not path.exists():
        return
    index = read_json(path)
    shards = index.get("weight_map")
    if not isinstance(shards, dict):
        raise bad_model(path, "has no weight_map")
    names = sorted({str(name) for name in shards.values()})
    if others := [name for name in names if not _is_weight_file(name)]:
        listed = ", ".join(map(shown, others[:3]))
        raise bad_model(path, f"names weight files that are not in the folder, or no safetensors: {listed}")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise bad_model(folder, f"lacks {len(missing)} of its weight files: {', '.join(map(shown, missing[:3]))}")


def _is_weight_file(name: str) -> bool:
    """Return whether a name is that of a safetensors file within a folder, of a length that file systems take."""
    return (
        os.path.basename(name) == name and name.endswith(".safetensors") and len(name.encode(errors="replace")) <= 255
    )


def _end_of_tensors(path: Path, places: Iterable[tuple[int, int, str]]) -> int:
    """Return where the last tensor ends.

    Args:
        path: The file, for the error.
        places: Begin, end and name of each tensor, in the order of the file.

    Raises:
        RequestError: bad_model: they do not follow one another.
    """
    end = 0
    for begin, next_end, name in places:
        if begin != end:
            how = "overlaps the tensor before it" if begin < end else f"leaves a gap of {begin - end} bytes before it"
            raise bad_model(path, f"has a damaged header: {shown(name)} {how}")
        end = next_end
    return end


def _place(name: str, tensor: dict[str, Any]) -> tuple[int, int]:
    """Return where a tensor begins and ends."""
    begin, end = map(_whole, tensor["data_offsets"])
    if len(tensor["shape"]) > MAX_DIMENSIONS:
        raise ValueError(f"{shown(name)} has {len(tensor['shape'])} dimensions")
    shape = [_whole(size) for size in tensor["shape"]]
    bits = DTYPE_BITS.get(tensor["dtype"])
    if begin > end or max(shape, default=0) > MAX_DIMENSION:
        raise ValueError(f"{shown(name)} has the shape {shown(shape)} and the offsets {begin} to {end}")
    if bits and math.prod(shape) * bits != (end - begin) * 8:
        raise ValueError(f"{shown(name)} has {end - begin} bytes for shape {shown(shape)}")
    return begin, end


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{shown(value)} is not a size")
    return value
