"""The media that a worker may read, and their limits."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Permissions and limits, as set by the host that started the worker."""

    directories: tuple[Path, ...] = ()
    """Files under these may be read, and no others; symbolic links may not lead out of them."""
    urls: bool = False
    """Permission to fetch http and https addresses, from public hosts."""

    max_bytes: int = 64 * 2**20
    """Maximum size of one image or sound as a file, in bytes."""
    max_pixels: int = 64_000_000
    """Maximum number of pixels of one image."""
    max_request_pixels: int = 256_000_000
    """Maximum number of pixels of a request's images, which are in memory together at 3 bytes each."""
    max_samples: int = 2 * 3600 * 48_000
    """Maximum number of samples of one sound, in one channel of 4 bytes each: 2 hours at 48 kHz."""
    fetch_seconds: float = 20.0
    """Time limit of one download, redirects included, in seconds."""
