"""Hash everything that a model's caches depend on. Caches are reused only if the hash is the same."""

import hashlib
from collections.abc import Sequence
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
    """Return the fingerprint of a load: its files, KV cache options, library versions and device.

    Args:
        network: The network that runs.
        request: The load.
        folders: The folders of the model, its adapter and its draft model.
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
    from importlib import metadata  # its import is slow, and few workers have a disk tier

    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:  # text needs no mlx-vlm
        return None
