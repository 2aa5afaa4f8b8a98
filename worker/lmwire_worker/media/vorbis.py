"""Decodes Ogg Vorbis, with libvorbis: damaged files make the decoder in miniaudio write beyond its memory."""

import io
from array import array
from typing import Final

from .media_error import Problem

_FRAMES: Final = 1 << 14
"""Decoded at a time; a file may have 255 channels."""


def decode_vorbis(content: bytes, limit: int) -> "tuple[array[float], int]":
    """Return a file's samples, its channels as one, and how many of them a second has.

    Args:
        content: The file.
        limit: How many samples are decoded at most, and some more.

    Raises:
        Problem: it is no such file, or soundfile is not installed.
    """
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: it does not find its own library
        problem = "soundfile is not installed, which reads Ogg Vorbis; install it with `pip install 'lmwire[vision]'`"
        raise Problem(problem, "unsupported") from None
    samples = array("f")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if (file.format, file.subtype) != ("OGG", "VORBIS"):
                raise Problem("is a damaged sound")
            while len(frames := file.read(_FRAMES, dtype="float32", always_2d=True)) and len(samples) <= limit:
                samples.frombytes(frames.mean(axis=1, dtype="float32").tobytes())
            return samples, file.samplerate
    except (soundfile.SoundFileError, RuntimeError, ValueError):
        raise Problem("is a damaged sound") from None
