"""The samples of a speech."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from lmwire_protocol import events

SAMPLE_BYTES: Final = 2
"""Bytes of a sample."""
_EMPTY_RATE: Final = 24_000
"""Sample rate in the file of a speech without samples."""


def speech_samples(part: events.Audio) -> bytes:
    """Return the samples of a part: little-endian, 16 bits each, one channel.

    Raises:
        ValueError: The worker has sent something else.
    """
    try:
        return base64.b64decode(part.audio, validate=True)
    except binascii.Error as error:
        raise ValueError(f"audio: is not base64: {error}") from None


def assemble_wav(parts: Sequence[events.Audio]) -> bytes:
    """Return the parts of a speech as the content of a WAV file."""
    import io  # not needed by most programs, which would start later
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(SAMPLE_BYTES)
        writer.setframerate(parts[0].sample_rate if parts else _EMPTY_RATE)
        writer.writeframes(b"".join(map(speech_samples, parts)))
    return file.getvalue()
