"""Images: their limits, and their pixels from a decoder process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .decoder_process import CPU_S, INSPECTION_BYTES, Declared, DecoderProcess, Question, no_data
from .media_error import MediaError
from .policy import MediaPolicy

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

PIXEL_BYTES: Final = 4
"""Bytes of a decoded pixel: Pillow pads red, green and blue."""
DECODER_PIXEL_BYTES: Final = 16
"""Bytes that a decoder takes for each pixel: the image, a turned copy, and the coefficients of a progressive JPEG."""
CPU_S_PER_PIXEL: Final = 0.25e-6
"""Processor time for each pixel beyond `CPU_S`, in seconds: some ten times that of an ordinary image."""
_SIZE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Image:
    """A decoded image."""

    pixels: "Pixels"
    """The image in RGB, upright, on white where it was transparent. Shared, so never change it."""
    digest: bytes
    """SHA-256 of the file. Equal digests mean equal images."""


def inspect_image(
    decoder: DecoderProcess, content: bytes, policy: MediaPolicy, is_dropped: Callable[[], bool] = lambda: False
) -> Declared:
    """Return what an image declares.

    Args:
        decoder: The process that reads it.
        content: The file.
        policy: The limits.
        is_dropped: Returns whether nobody needs the image any more.

    Raises:
        MediaError: The file is not a supported image, or its size is refused.
    """
    question = Question({"subject": "inspect", "kind": "image"}, CPU_S, INSPECTION_BYTES)
    found = decoder.ask(question, content, no_data, is_dropped)
    width, height = int(found["width"]), int(found["height"])
    pixels = width * height
    if pixels > policy.max_pixels:
        size = f"{width:,} x {height:,} pixels"
        raise MediaError(f"has {size}; at most {policy.max_pixels:,} in all are taken; make it smaller")
    if max(width, height) > policy.max_aspect * min(width, height):
        size = f"{width:,} x {height:,} pixels"
        raise MediaError(f"has {size}; one side may be {policy.max_aspect} times the other; cut it into parts")
    work_bytes = DECODER_PIXEL_BYTES * pixels
    question = Question(
        {"subject": "decode", "kind": "image"}, CPU_S + CPU_S_PER_PIXEL * pixels, INSPECTION_BYTES + 2 * work_bytes
    )
    return Declared("image", pixels, PIXEL_BYTES * pixels, work_bytes, question)


def decode_image(
    decoder: DecoderProcess, content: bytes, declared: Declared, is_dropped: Callable[[], bool] = lambda: False
) -> "Pixels":
    """Decode an image, to RGB.

    Args:
        decoder: The process that decodes it.
        content: The file.
        declared: What `inspect_image` found.
        is_dropped: Returns whether nobody needs the image any more.

    Raises:
        MediaError: The file is damaged, or exceeds what it declared.
    """
    canvas = _Canvas(declared.units)
    decoder.ask(declared.question, content, canvas.buffer, is_dropped)
    return canvas.finish()


class _Canvas:
    """Receives an image in strips of rows.

    Args:
        pixels: Maximum number of pixels.
    """

    def __init__(self, pixels: int) -> None:
        self._pixels = pixels
        self._image: Pixels | None = None
        self._strip = bytearray()
        self._top = 0

    def buffer(self, size: int) -> memoryview:
        """Return where the next strip is to be written; see `decoder_process.Buffer`."""
        self._paste()
        if size > 3 * self._pixels + _SIZE_BYTES:
            raise ValueError("more pixels than there are")
        if len(self._strip) != size:
            self._strip = bytearray(size)
        return memoryview(self._strip)

    def finish(self) -> "Pixels":
        """Return the image, whose strips have come."""
        self._paste()
        if self._image is None or self._top != self._image.height:
            raise MediaError("is damaged: rows of it are missing; save it anew")
        return self._image

    def _paste(self) -> None:
        """Add the strip that has come: first the width and height, then rows."""
        import PIL.Image

        if not self._strip:
            return
        if self._image is None:
            width, height = int.from_bytes(self._strip[:8]), int.from_bytes(self._strip[8:])
            if not 0 < width * height <= self._pixels:
                raise MediaError("has another size than its header declares; save it anew")
            self._image = PIL.Image.new("RGB", (width, height), None)  # pyright: ignore[reportArgumentType]
            self._strip = bytearray()
            return
        rows, rest = divmod(len(self._strip), 3 * self._image.width)
        if rest or self._top + rows > self._image.height:
            raise ValueError("not whole rows of the image")
        size = (self._image.width, rows)
        self._image.paste(PIL.Image.frombuffer("RGB", size, self._strip, "raw", "RGB", 0, 1), (0, self._top))
        self._top += rows
