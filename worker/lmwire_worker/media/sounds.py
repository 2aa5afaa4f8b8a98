"""Decodes sounds, into one channel, and no more of them than is allowed."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .media_error import Problem
from .policy import Policy
from .vorbis import decode_vorbis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FRAMES: Final = 1 << 16
"""Decoded at a time."""
_RATES: Final = range(8_000, 384_000 + 1)
"""Samples a second: what the library resamples between."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A decoded sound."""

    samples: "NDArray[np.float32]"
    """[n], n above 0: one channel, -1 to 1."""
    rate: int
    """Samples a second: the file's own."""
    digest: bytes
    """SHA-256 of the file: equal digests are equal sounds."""

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / self.rate


def decode_sound(content: bytes, policy: Policy) -> "tuple[NDArray[np.float32], int]":
    """A file's samples, and how many of them a second has. Raises Problem."""
    try:
        import miniaudio  # noqa: F401
        import numpy as np
    except ImportError:
        problem = "miniaudio is not installed, which reads sounds; install it with `pip install 'lmwire[vision]'`"
        raise Problem(problem, "unsupported") from None
    if content.startswith(b"OggS"):
        decoded, rate = decode_vorbis(content, policy.max_samples)
        _check_rate(rate)
    else:
        decoded, rate = _decode(content, policy.max_samples)
    if len(decoded) > policy.max_samples:
        minutes = policy.max_samples / rate / 60
        problem = f"has more than {policy.max_samples:,} samples, {minutes:.0f} minutes of it; send it in parts"
        raise Problem(problem)
    if not decoded:
        raise Problem("is a sound of no length")
    samples = np.frombuffer(decoded, np.float32)
    if not np.isfinite(samples).all():
        raise Problem("holds samples that are no numbers")
    return samples, rate


def _describer(content: bytes) -> Callable[[bytes], Any]:
    """What reads the header of this format. MP3's would find its frames in anything, so it is asked last."""
    import miniaudio

    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return miniaudio.wav_get_info
    if content.startswith(b"fLaC"):
        return miniaudio.flac_get_info
    if content.startswith(b"ID3") or (len(content) > 1 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2):
        return miniaudio.mp3_get_info
    raise Problem("is no sound in a format that is read; send WAV, MP3, FLAC or Ogg Vorbis")


def _decode(content: bytes, limit: int) -> "tuple[array[float], int]":
    """One channel, in slices: what a header says of a length, or leaves out, is no promise."""
    import miniaudio

    describe = _describer(content)
    samples = array("f")
    try:
        rate = describe(content).sample_rate
        _check_rate(rate)
        for decoded in miniaudio.stream_memory(content, miniaudio.SampleFormat.FLOAT32, 1, rate, _FRAMES):
            samples.extend(decoded)
            if len(samples) > limit:
                break
    except (miniaudio.MiniaudioError, ZeroDivisionError):
        raise Problem("is a damaged sound") from None
    return samples, rate


def _check_rate(rate: int) -> None:
    if rate not in _RATES:
        raise Problem(f"has {rate:,} samples a second; {_RATES[0]:,} to {_RATES[-1]:,} are read")
