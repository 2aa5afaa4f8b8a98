"""Decode images, after a check of the size that they declare."""

import io
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lmwire_protocol.extras import not_installed

from .media_error import MediaError
from .policy import MediaPolicy

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Formats that are read. Pillow has other decoders that are rarely needed or reviewed, or that run programs."""
_MULTI_PICTURE: Final = "MPO"
"""Pillow's name for JPEGs of cameras that append a preview or a depth map. The image itself comes first."""


@dataclass(frozen=True, slots=True)
class Image:
    """A decoded image."""

    pixels: "Pixels"
    """The image in RGB, upright, on white where it was transparent. Shared, so never change it."""
    digest: bytes
    """SHA-256 of the file. Equal digests mean equal images."""


class PixelBudget:
    """The pixels that the images of one request may have in all.

    Args:
        limit: Maximum number of pixels.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    def take(self, pixels: int) -> None:
        """Take pixels from the budget.

        Raises:
            MediaError: The budget is exceeded.
        """
        with self._lock:
            self._taken += pixels
            if self._taken > self._limit:
                raise MediaError(
                    f"brings the request's images to {self._taken:,} pixels; at most {self._limit:,} are taken: "
                    "make them smaller, or ask in several requests"
                )


def decode_image(content: bytes, policy: MediaPolicy, allowance: PixelBudget) -> "Pixels":
    """Decode an image, to RGB.

    Args:
        content: The file.
        policy: The limits.
        allowance: Pixels that the request may still have.

    Raises:
        MediaError: The file is not a supported image, is corrupted, or is too large.
    """
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        problem = not_installed("Pillow", "vision", purpose="reads images")
        raise MediaError(problem, "unsupported") from None
    try:
        image = PIL.Image.open(io.BytesIO(content), formats=_FORMATS)
    except PIL.Image.DecompressionBombError:
        raise MediaError(f"has more pixels than the {policy.max_pixels:,} that are taken; make it smaller") from None
    except Exception:  # a format's reader may raise anything on a corrupted header
        raise MediaError(f"is not a supported image, or is corrupted; send {_named(_FORMATS)}") from None
    pixels = image.width * image.height
    if pixels > policy.max_pixels:
        size = f"{image.width:,} x {image.height:,} pixels"
        raise MediaError(f"has {size}; at most {policy.max_pixels:,} in all are taken; make it smaller")
    allowance.take(pixels)
    try:
        if image.format != _MULTI_PICTURE and getattr(image, "is_animated", False):
            raise MediaError("holds several pictures; send the one that is meant, as a file of its own")
        image.load()
        return _in_rgb(PIL.ImageOps.exif_transpose(image))
    except MediaError:
        raise
    except Exception as error:  # a decoder may fail at anything
        raise MediaError(f"is a damaged {image.format} image: {error}") from None


def _in_rgb(image: "Pixels") -> "Pixels":
    """Convert to RGB, on white where it is transparent: there, hidden pixels are often black, and so is text."""
    import PIL.Image

    if image.mode.startswith("I;16"):  # Pillow's own conversion would cut all above 255
        return PIL.Image.fromarray((_array(image) >> 8).astype("uint8")).convert("RGB")
    if image.mode in ("I", "F"):
        raise MediaError("has pixels of 32 bits; send 8 or 16")
    if not image.has_transparency_data:
        return image.convert("RGB")
    upper = image.convert("RGBA")
    return PIL.Image.alpha_composite(PIL.Image.new("RGBA", upper.size, "white"), upper).convert("RGB")


def _array(image: "Pixels") -> Any:
    import numpy as np

    return np.asarray(image)


def _named(formats: tuple[str, ...]) -> str:
    return f"{', '.join(formats[:-1])} or {formats[-1]}"
