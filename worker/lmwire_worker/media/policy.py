"""The media that a worker may read, and their limits."""

from pathlib import Path
from typing import Final

from msgspec import Struct

MAX_BYTES: Final = 64 * 2**20
MAX_REQUEST_BYTES: Final = 256 * 2**20
MAX_PIXELS: Final = 64_000_000
MAX_REQUEST_PIXELS: Final = 256_000_000
MAX_ASPECT: Final = 300
MAX_SAMPLES: Final = 2 * 3600 * 48_000
MAX_REQUEST_SAMPLES: Final = 2 * 3600 * 48_000
MEMORY_BYTES: Final = 2 * 2**30
FILE_MEMORY_BYTES: Final = 512 * 2**20
DECODER_MEMORY_BYTES: Final = 1280 * 2**20


class MediaPolicy(Struct, frozen=True):
    """Permissions and limits, as set by the host that started the worker."""

    directories: tuple[Path, ...] = ()
    """Files under these may be read, and no others; symbolic links may not lead out of them."""
    urls: bool = False
    """Permission to fetch http and https addresses, from public hosts."""

    max_bytes: int = MAX_BYTES
    """Maximum size of one image or sound as a file, in bytes."""
    max_request_bytes: int = MAX_REQUEST_BYTES
    """Maximum size of a request's files from disk and network together, in bytes."""
    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels of one image."""
    max_request_pixels: int = MAX_REQUEST_PIXELS
    """Maximum number of pixels of a request's images, which are in memory together."""
    max_aspect: int = MAX_ASPECT
    """Maximum ratio of an image's longer side to the other. Processors that scale the shorter side up make much more of
    a thin image."""
    max_samples: int = MAX_SAMPLES
    """Maximum number of samples of one sound, in one channel of 4 bytes each: 2 hours at 48 kHz."""
    max_request_samples: int = MAX_REQUEST_SAMPLES
    """Maximum number of samples of a request's sounds together."""
    fetch_seconds: float = 20.0
    """Time limit of one download, redirects included, in seconds."""

    memory_bytes: int = MEMORY_BYTES
    """Memory for the images and sounds of all requests that are decoded, or are being decoded, in bytes."""
    file_memory_bytes: int = FILE_MEMORY_BYTES
    """Memory for files from disk and network that wait to be decoded, in bytes."""
    decoder_memory_bytes: int = DECODER_MEMORY_BYTES
    """Memory for the work of all decoder processes, in bytes."""
