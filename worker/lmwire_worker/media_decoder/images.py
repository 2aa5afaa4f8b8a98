"""Decode images with Pillow, to RGB, in strips of rows."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .pipes import MissingLibraryError, RefusedError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Formats that are read. Pillow has other decoders that are rarely needed or reviewed, or that run programs."""
MAX_SCANS: Final = 100
"""Maximum number of scans of a JPEG. Each takes as long as the whole image, and encoders make some ten of them."""
MAX_SEGMENTS: Final = 10_000
"""Maximum number of segments of a JPEG."""
_MULTI_PICTURE: Final = "MPO"
"""Pillow's name for JPEGs of cameras that append a preview or a depth map. The image itself comes first."""
_STRIP_BYTES: Final = 2**18
_ORIENTATION: Final = 0x0112
_JPEG_MARKER: Final = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""A marker. In the data of a scan, 0xFF is followed by 0, by a restart marker or by a filler."""
_SCAN, _END, _ALONE = 0xDA, 0xD9, (0x01, 0xD8, 0xD9)


def inspect(content: bytes) -> dict[str, Any]:
    """Return the `width` and `height` that an image declares, without decoding it.

    Raises:
        RefusedError: The file is not a supported image, or has too many scans or several pictures.
        MissingLibraryError: Pillow is not installed.
    """
    if content.startswith(b"\xff\xd8"):
        _check_scans(content)
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        width, height = _webp_size(content)  # Pillow's opening of a WebP allocates its pixels
    else:
        image = _open(content)
        _check_single(image)
        width, height = image.size
    if not width or not height:
        raise _unsupported()
    return {"width": width, "height": height}


def decode(content: bytes, write: Callable[[bytes], None]) -> dict[str, Any]:
    """Decode an image, and return its `width` and `height`.

    Args:
        content: The file, which `inspect` accepted.
        write: Receives the pixels as RGB in strips of whole rows. A first call with 16 bytes has the width and height.

    Raises:
        RefusedError: The image is damaged, or cannot become RGB of 8 bits.
    """
    image = _open(content)
    _check_single(image)
    try:
        image.load()
        image = _upright(image)
        width, height = image.size
        write(width.to_bytes(8) + height.to_bytes(8))
        rows = max(_STRIP_BYTES // (3 * width), 1)
        for top in range(0, height, rows):
            write(_in_rgb(image.crop((0, top, width, min(top + rows, height)))).tobytes())
    except (RefusedError, MemoryError, BrokenPipeError):
        raise
    except Exception as error:  # a decoder may fail at anything
        raise RefusedError(f"is a damaged {image.format or 'picture in an'} image: {error}") from None
    return {"width": width, "height": height}


def _open(content: bytes) -> "Image":
    try:
        import PIL.Image
    except ImportError:
        raise MissingLibraryError("Pillow", "vision", "reads images") from None
    PIL.Image.MAX_IMAGE_PIXELS = None  # the worker compares the declared size with its own limit
    try:
        return PIL.Image.open(io.BytesIO(content), formats=_candidates(content))
    except MemoryError:
        raise
    except Exception:  # a format's reader may raise anything on a corrupted header
        raise _unsupported() from None


def _candidates(content: bytes) -> tuple[str, ...]:
    """Return the formats that a file may have. Pillow would import the readers of all formats to find those of two."""
    if content.startswith(b"RIFF"):
        import PIL.WebPImagePlugin

        return ("WEBP",)
    if content.startswith((b"II", b"MM")):
        import PIL.TiffImagePlugin  # noqa: F401

        return ("TIFF",)
    return ("PNG", "JPEG", "GIF", "BMP")


def _unsupported() -> RefusedError:
    named = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    return RefusedError(f"is not a supported image, or is corrupted; send {named}")


def _check_single(image: "Image") -> None:
    try:
        several = image.format != _MULTI_PICTURE and getattr(image, "is_animated", False)
    except MemoryError:
        raise
    except Exception as error:
        raise RefusedError(f"is a damaged {image.format} image: {error}") from None
    if several:
        raise RefusedError("holds several pictures; send the one that is meant, as a file of its own")


def _check_scans(content: bytes) -> None:
    """Count the scans of a JPEG, up to the end of its first picture."""
    at = scans = 0
    for _ in range(MAX_SEGMENTS):
        found = _JPEG_MARKER.search(content, at)
        if found is None or (marker := content[found.start() + 1]) == _END:
            return
        at = found.end()
        if marker not in _ALONE:
            at += int.from_bytes(content[at : at + 2])
        if marker == _SCAN:
            scans += 1
            if scans > MAX_SCANS:
                raise RefusedError(f"has more than {MAX_SCANS} scans; save it anew as an ordinary JPEG")
    raise RefusedError(f"has more than {MAX_SEGMENTS:,} segments; save it anew as an ordinary JPEG")


def _webp_size(content: bytes) -> tuple[int, int]:
    """Return the width and height of a WebP.

    Its chunks are those of https://developers.google.com/speed/webp/docs/riff_container.
    """
    chunk, body = content[12:16], content[20:30]
    if len(body) < 10:
        raise _unsupported()
    if chunk == b"VP8X":
        if body[0] & 0x02:
            raise RefusedError("holds several pictures; send the one that is meant, as a file of its own")
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if chunk == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 ":
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    raise _unsupported()


def _upright(image: "Image") -> "Image":
    """Return an image as its camera was held. A broken note about that is ignored."""
    from PIL.Image import Transpose

    try:
        orientation = image.getexif().get(_ORIENTATION)
    except MemoryError:
        raise
    except Exception:
        return image
    turns = {
        2: Transpose.FLIP_LEFT_RIGHT, 3: Transpose.ROTATE_180, 4: Transpose.FLIP_TOP_BOTTOM, 5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270, 7: Transpose.TRANSVERSE, 8: Transpose.ROTATE_90,
    }  # fmt: skip
    turn = turns.get(orientation) if isinstance(orientation, int) else None
    return image if turn is None else _turned(image, turn)


def _turned(image: "Image", turn: Any) -> "Image":
    turned = image.transpose(turn)
    turned.info, turned.format = image.info, image.format  # the transparent color is there
    image.close()
    return turned


def _in_rgb(image: "Image") -> "Image":
    """Convert to RGB, on white where it is transparent: there, hidden pixels are often black, and so is text."""
    import PIL.Image

    if image.mode.startswith("I;16"):  # Pillow's own conversion would cut all above 255
        return PIL.Image.frombytes("L", image.size, image.tobytes("raw", "I;16B")[::2]).convert("RGB")
    if image.mode in ("I", "F"):
        raise RefusedError("has pixels of 32 bits; send 8 or 16")
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    upper = image.convert("RGBA")
    return PIL.Image.alpha_composite(PIL.Image.new("RGBA", upper.size, "white"), upper).convert("RGB")
