"""Decodes images, whose size is known and allowed before a pixel of them is."""

import io
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .media_error import Problem
from .policy import Policy

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Pillow would also try decoders that are seldom needed, seldom looked at, or run other programs."""
_MULTI_PICTURE: Final = "MPO"
"""How Pillow calls the JPEGs of cameras that append a preview or a depth map; the picture itself comes first."""


@dataclass(frozen=True, slots=True)
class Image:
    """A decoded image."""

    pixels: "Pixels"
    """RGB, upright, on white where it was transparent. Shared: not to be changed."""
    digest: bytes
    """SHA-256 of the file: equal digests are equal images."""


class PixelAllowance:
    """What the images of one request may have in all.

    Args:
        limit: Pixels.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    def take(self, pixels: int) -> None:
        """Raises Problem when it is used up."""
        with self._lock:
            self._taken += pixels
            if self._taken > self._limit:
                raise Problem(
                    f"brings the request's images to {self._taken:,} pixels; at most {self._limit:,} are taken: "
                    "make them smaller, or ask in several requests"
                )


def decode_image(content: bytes, policy: Policy, allowance: PixelAllowance) -> "Pixels":
    """A file's image, in RGB. Raises Problem."""
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        problem = "Pillow is not installed, which reads images; install it with `pip install 'lmwire[vision]'`"
        raise Problem(problem, "unsupported") from None
    try:
        image = PIL.Image.open(io.BytesIO(content), formats=_FORMATS)
    except PIL.Image.DecompressionBombError:
        raise Problem(f"has more pixels than the {policy.max_pixels:,} that are taken; make it smaller") from None
    except Exception:  # what a format's reader makes of a broken header may be anything
        raise Problem(f"is no image in a format that is read, or a damaged one; send {_named(_FORMATS)}") from None
    pixels = image.width * image.height
    if pixels > policy.max_pixels:
        size = f"{image.width:,} x {image.height:,} pixels"
        raise Problem(f"has {size}; at most {policy.max_pixels:,} in all are taken; make it smaller")
    allowance.take(pixels)
    try:
        if image.format != _MULTI_PICTURE and getattr(image, "is_animated", False):
            raise Problem("holds several pictures; send the one that is meant, as a file of its own")
        image.load()
        return _in_rgb(PIL.ImageOps.exif_transpose(image))
    except Problem:
        raise
    except Exception as error:  # a decoder may fail at anything
        raise Problem(f"is a damaged {image.format} image: {error}") from None


def _in_rgb(image: "Pixels") -> "Pixels":
    """On white where it is transparent: what is behind transparent pixels is often black, as is the text before it."""
    import PIL.Image

    if image.mode.startswith("I;16"):  # Pillow's own conversion would cut all above 255
        return PIL.Image.fromarray((_array(image) >> 8).astype("uint8")).convert("RGB")
    if image.mode in ("I", "F"):
        raise Problem("has pixels of 32 bits; send 8 or 16")
    if not image.has_transparency_data:
        return image.convert("RGB")
    upper = image.convert("RGBA")
    return PIL.Image.alpha_composite(PIL.Image.new("RGBA", upper.size, "white"), upper).convert("RGB")


def _array(image: "Pixels") -> Any:
    import numpy as np

    return np.asarray(image)


def _named(formats: tuple[str, ...]) -> str:
    return f"{', '.join(formats[:-1])} or {formats[-1]}"
