"""Decode sounds into one channel, up to the allowed length."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lmwire_protocol.extras import not_installed

from .aac import container_format, decode_aac
from .media_error import MediaError
from .policy import MediaPolicy
from .vorbis import decode_vorbis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FRAMES: Final = 1 << 16
"""Frames decoded at a time."""
_RATES: Final = range(8_000, 384_000 + 1)
"""Sample rates that the library resamples between, in samples per second."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A decoded sound."""

    samples: "NDArray[np.float32]"
    """Samples of one channel, [n], from -1 to 1. Never empty."""
    rate: int
    """Samples per second, as in the file."""
    digest: bytes
    """SHA-256 of the file. Equal digests mean equal sounds."""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


def decode_sound(content: bytes, policy: MediaPolicy) -> "tuple[NDArray[np.float32], int]":
    """Decode a sound. Return its samples, and its rate in samples per second.

    Args:
        content: The file.
        policy: The limits.

    Raises:
        MediaError: The file is not a supported sound, is corrupted, or is too long.
    """
    try:
        import miniaudio  # noqa: F401
        import numpy as np
    except ImportError:
        problem = not_installed("miniaudio", "vision", purpose="reads sounds")
        raise MediaError(problem, "unsupported") from None
    if content.startswith(b"OggS"):
        decoded, rate = decode_vorbis(content, policy.max_samples)
        _check_rate(rate)
    elif container := container_format(content):
        decoded, rate = decode_aac(content, container, policy.max_samples)
        _check_rate(rate)
    else:
        decoded, rate = _decode(content, policy.max_samples)
    if len(decoded) > policy.max_samples:
        minutes = policy.max_samples / rate / 60
        problem = f"has more than {policy.max_samples:,} samples, {minutes:.0f} minutes of it; send it in parts"
        raise MediaError(problem)
    if not decoded:
        raise MediaError("is a sound without samples")
    samples = np.frombuffer(decoded, np.float32)
    if not np.isfinite(samples).all():
        raise MediaError("holds samples that are not numbers")
    return samples, rate


def _header_reader(content: bytes) -> Callable[[bytes], Any]:
    """Return the function that reads this format's header. MP3 comes last: its frames are found in almost any data."""
    import miniaudio

    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return miniaudio.wav_get_info
    if content.startswith(b"fLaC"):
        return miniaudio.flac_get_info
    if content.startswith(b"ID3") or (len(content) > 1 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2):
        return miniaudio.mp3_get_info
    raise MediaError("is not a supported sound; send WAV, MP3, FLAC, Ogg Vorbis, M4A or AAC")


def _decode(content: bytes, limit: int) -> "tuple[array[float], int]":
    """Decode into one channel, in slices: a header's length may be wrong or missing."""
    import miniaudio

    describe = _header_reader(content)
    samples = array("f")
    try:
        rate = describe(content).sample_rate
        _check_rate(rate)
        for decoded in miniaudio.stream_memory(content, miniaudio.SampleFormat.FLOAT32, 1, rate, _FRAMES):
            samples.extend(decoded)
            if len(samples) > limit:
                break
    except (miniaudio.MiniaudioError, ZeroDivisionError):
        raise MediaError("is a damaged sound") from None
    return samples, rate


def _check_rate(rate: int) -> None:
    if rate not in _RATES:
        raise MediaError(f"has {rate:,} samples a second; {_RATES[0]:,} to {_RATES[-1]:,} are read")
