"""Decode Ogg Vorbis with libvorbis: miniaudio's decoder writes beyond its memory on corrupted files."""

import io
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .pipes import MissingLibraryError, RefusedError
from .sounds import Description, Part

_FRAMES: Final = 1 << 14
"""Frames decoded at a time. A file may have 255 channels."""


def describe(content: bytes) -> Description:
    """Return what a file declares.

    Raises:
        RefusedError: The file is not Ogg Vorbis, or is damaged.
        MissingLibraryError: soundfile is not installed.
    """
    with _opened(content) as file:
        return Description(file.samplerate, file.frames, file.frames)


def parts(content: bytes, limit: int) -> Iterator[Part]:
    """Yield the samples, and stop after a number of them.

    Args:
        content: The file.
        limit: Number of samples after which to stop.

    Raises:
        RefusedError: The file is damaged.
        MissingLibraryError: soundfile is not installed.
    """
    with _opened(content) as file:
        count = 0
        while count <= limit and len(frames := file.read(_FRAMES, dtype="float32", always_2d=True)):
            yield Part(array("f", frames.mean(axis=1, dtype="float32").tobytes()), file.samplerate)
            count += len(frames)


@contextmanager
def _opened(content: bytes) -> Iterator[Any]:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: it does not find its own library
        raise MissingLibraryError("soundfile", "vision", "reads Ogg Vorbis") from None
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if (file.format, file.subtype) != ("OGG", "VORBIS"):
                raise RefusedError("is a damaged sound")
            yield file
    except (soundfile.SoundFileError, RuntimeError, ValueError):
        raise RefusedError("is a damaged sound") from None
