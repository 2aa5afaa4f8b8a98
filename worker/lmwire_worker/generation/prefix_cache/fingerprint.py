"""What a model's caches depend on, in few digits: only where all of it is the same are they of use."""

import hashlib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from lmwire_protocol import Load, __version__

from ...models.shared_weights import list_files
from . import flatten_caches

LIBRARIES: Final = ("mlx", "mlx-lm", "mlx-vlm")
DIGITS: Final = 32


def fingerprint(network: Any, request: Load, folders: Sequence[Path]) -> str:
    """Of a load: its files, what it asks of the KV cache, the versions of what computes, and the device.

    Args:
        network: As it runs.
        request: The load.
        folders: Of the model, and of the adapter and the draft model that run with it.
    """
    everything = (
        [(str(path), list_files(path)) for path in folders],
        request.kv_bits,
        [type(part).__name__ for part in flatten_caches(make_prompt_cache(network))],
        [__version__, *((name, _version(name)) for name in LIBRARIES)],
        sorted((key, value) for key, value in mx.device_info().items() if key in ("architecture", "device_name")),
        str(mx.default_device()),
    )
    return hashlib.sha256(repr(everything).encode()).hexdigest()[:DIGITS]


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:  # text needs no mlx-vlm
        return None
