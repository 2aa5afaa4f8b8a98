"""Decode Ogg Vorbis with libvorbis: miniaudio's decoder writes beyond its memory on corrupted files."""

import io
from array import array
from typing import Final

from lmwire_protocol.extras import not_installed

from .media_error import MediaError

_FRAMES: Final = 1 << 14
"""Frames decoded at a time. A file may have 255 channels."""


def decode_vorbis(content: bytes, limit: int) -> "tuple[array[float], int]":
    """Return a file's samples, with all channels mixed into one, and its rate in samples per second.

    Args:
        content: The file.
        limit: Number of samples after which decoding stops. The result may have slightly more.

    Raises:
        MediaError: The file is not Ogg Vorbis or is corrupted, or soundfile is not installed.
    """
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: it does not find its own library
        problem = not_installed("soundfile", "vision", purpose="reads Ogg Vorbis")
        raise MediaError(problem, "unsupported") from None
    samples = array("f")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if (file.format, file.subtype) != ("OGG", "VORBIS"):
                raise MediaError("is a damaged sound")
            while len(frames := file.read(_FRAMES, dtype="float32", always_2d=True)) and len(samples) <= limit:
                samples.frombytes(frames.mean(axis=1, dtype="float32").tobytes())
            return samples, file.samplerate
    except (soundfile.SoundFileError, RuntimeError, ValueError):
        raise MediaError("is a damaged sound") from None
