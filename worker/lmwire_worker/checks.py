"""What a model's folder must hold, checked before anything is given up for it and before any weight is read."""

import json
import math
from pathlib import Path
from typing import Any, Final

from lmwire_protocol import RequestError

DTYPE_BITS: Final = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
LONGEST_HEADER: Final = 100_000_000
"""Bytes; the format's own bound."""
TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer.model", "vocab.json", "*.tiktoken", "tokenizer_config.json")


def check_folder(folder: Path, *, trust_remote_code: bool) -> dict[str, Any]:
    """Checks a model's files and returns its config.json.

    Raises:
        RequestError: bad_model, unsupported.
    """
    config = check_files(folder)
    if config.get("model_file") is not None and not trust_remote_code:
        problem = f"{folder} brings its own code ({config['model_file']}), which runs only when trusted"
        raise RequestError("unsupported", f"{problem}; read it, and then load with trust_remote_code")
    return config


def check_files(folder: Path) -> dict[str, Any]:
    """Checks that a model's files are there and whole, and returns its config.json."""
    config = read_json(folder / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise _bad(folder / "config.json", "names no model_type")
    _check_index(folder)
    weights = sorted(folder.glob("model*.safetensors"))
    if not weights:
        others = sorted(path.name for path in folder.iterdir() if path.suffix in (".safetensors", ".bin", ".gguf"))
        hint = f" (only {', '.join(others[:3])}; convert the model with mlx_lm.convert)" if others else ""
        raise _bad(folder, f"has no weights: no file model*.safetensors{hint}")
    for path in weights:
        check_safetensors(path)
    if not any(any(folder.glob(pattern)) for pattern in TOKENIZER_FILES):
        raise _bad(folder, "has no tokenizer: no tokenizer.json, tokenizer.model or vocab.json")
    return config


def _check_index(folder: Path) -> None:
    path = folder / "model.safetensors.index.json"
    if not path.exists():
        return
    index = read_json(path)
    shards = index.get("weight_map")
    if not isinstance(shards, dict):
        raise _bad(path, "has no weight_map")
    missing = sorted({str(name) for name in shards.values() if not (folder / str(name)).is_file()})
    if missing:
        raise _bad(folder, f"lacks {len(missing)} of its weight files: {', '.join(missing[:3])}")


def check_safetensors(path: Path) -> None:
    """Compares a file's size with what its header says; reads no weights."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, LONGEST_HEADER):
                raise _bad(path, f"is truncated or no safetensors file: its {size} bytes do not hold its header")
            header = json.loads(file.read(length))
        ends = [_tensor_end(name, tensor) for name, tensor in header.items() if name != "__metadata__"]
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _bad(path, f"has a damaged header: {error}") from None
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise _bad(path, f"has {size} bytes where its header says {expected}; fetch it again")


def _tensor_end(name: str, tensor: dict[str, Any]) -> int:
    begin, end = tensor["data_offsets"]
    bits = DTYPE_BITS.get(tensor["dtype"])
    if not 0 <= begin <= end or (bits and math.prod(tensor["shape"]) * bits != (end - begin) * 8):
        raise ValueError(f"{name} has {end - begin} bytes for shape {tensor['shape']}")
    return end


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise _bad(path.parent, f"has no {path.name}, so it is no model") from None
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise _bad(path, "is not a JSON object")
    return content


def _bad(path: Path, problem: str) -> RequestError:
    return RequestError("bad_model", f"{path} {problem}")
