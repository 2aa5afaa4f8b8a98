"""Where a worker keeps caches on disk. Imports no model library."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_DISK_BYTES: Final = 16 * 2**30


@dataclass(frozen=True)
class DiskCacheOptions:
    """Of all models together.

    Args:
        directory: For the files.
        budget_bytes: What they may take.
        log: Told of files that are ignored, and of what cannot be written.
    """

    directory: Path
    budget_bytes: int
    log: Callable[[str], None]
