"""What a worker reads of what requests refer to, and how much of it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Policy:
    """As the host that started the worker allowed it."""

    directories: tuple[Path, ...] = ()
    """Files under these may be read, and no others; symbolic links may not lead out of them."""
    urls: bool = False
    """Whether http and https addresses may be fetched, from public hosts."""

    max_bytes: int = 64 * 2**20
    """Of one image or sound as it comes, decoded from base64."""
    max_pixels: int = 64_000_000
    """Of one image."""
    max_request_pixels: int = 256_000_000
    """Of all images of a request, which are in memory together: 3 bytes each."""
    max_samples: int = 2 * 3600 * 48_000
    """Of one sound, in one channel: 2 hours at 48 kHz. 4 bytes each."""
    fetch_seconds: float = 20.0
    """For one address, redirects included."""
