"""The options of the prefix cache on disk. Imports no model library."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

DEFAULT_DISK_BYTES: Final = 16 * 2**30


class DiskCacheOptions(Struct, frozen=True):
    """The options for all models together.

    Args:
        directory: The directory of the files.
        budget_bytes: Maximum size of all files.
        log: Receives a line for each file that is ignored or cannot be written.
    """

    directory: Path
    budget_bytes: int
    log: Callable[[str], None]
