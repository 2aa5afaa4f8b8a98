"""Decode sounds, with all channels mixed into one.

A decoder yields parts of float32 samples from -1 to 1. Each stops by itself after the number of samples it may make.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from .pipes import MissingLibraryError, RefusedError

RATES: Final = range(8_000, 384_000 + 1)
"""Sample rates that are read, in samples per second."""
_FRAMES: Final = 1 << 16
"""Frames decoded at a time."""


class Description(NamedTuple):
    """A sound, before it is decoded."""

    rate: int
    """Samples per second."""
    samples: int
    """Samples that the file declares; 0 if it does not say."""
    most: int
    """Samples that it may come to: encoders add silence, and some formats double the rate."""


def inspect(content: bytes, limit: int) -> dict[str, int]:
    """Return the `rate`, the `samples` and the `most` samples of a file; see `Description`.

    Args:
        content: The file.
        limit: Number of samples after which nobody needs to count.

    Raises:
        RefusedError: The file is not a supported sound, or is damaged.
        MissingLibraryError: The format's library is not installed.
    """
    found = _reader(content).describe(content)
    if found.rate not in RATES:
        raise RefusedError(f"has {found.rate:,} samples a second; {RATES[0]:,} to {RATES[-1]:,} are read")
    samples = found.samples
    if samples <= 0:  # a recorder that was stopped hard, or an encoder that wrote into a pipe
        samples = sum(len(part) for part in _reader(content).parts(content, limit))
        return {"rate": found.rate, "samples": samples, "most": samples}
    return {"rate": found.rate, "samples": samples, "most": found.most}


def decode(content: bytes, limit: int, write: Callable[[bytes | memoryview], None]) -> dict[str, int]:
    """Decode a sound, and return its `rate`.

    Args:
        content: The file.
        limit: Number of samples after which decoding stops. The result may have slightly more.
        write: Receives samples, as float32.

    Raises:
        RefusedError: The file is damaged.
        MissingLibraryError: The format's library is not installed.
    """
    reader = _reader(content)
    rate = 0
    for part in reader.parts(content, limit):
        rate = part.rate
        if len(part):
            write(memoryview(part.samples).cast("B"))
    return {"rate": rate}


class Part:
    """Samples of a sound, in order.

    Args:
        samples: One channel, as float32.
        rate: Samples per second.
    """

    def __init__(self, samples: "array[float]", rate: int) -> None:
        self.samples = samples
        self.rate = rate

    def __len__(self) -> int:
        return len(self.samples)


class Reader(NamedTuple):
    """The functions that read a format."""

    describe: Callable[[bytes], Description]
    parts: Callable[[bytes, int], Iterator[Part]]


def _reader(content: bytes) -> Reader:
    """Return the reader of a file's format. MP3 comes last: its frames are found in almost any data."""
    if content.startswith(b"OggS"):
        from . import vorbis

        return Reader(vorbis.describe, vorbis.parts)
    if content[4:8] == b"ftyp":
        from . import aac

        return Reader(aac.describe_mp4, aac.parts_of_mp4)
    if len(content) > 1 and content[0] == 0xFF and content[1] & 0xF6 == 0xF0:
        from . import aac

        return Reader(aac.describe_adts, aac.parts_of_adts)
    return Reader(_describe, _parts)


def _library() -> Any:
    try:
        import miniaudio
    except ImportError:
        raise MissingLibraryError("miniaudio", "vision", "reads sounds") from None
    return miniaudio


def _describe(content: bytes) -> Description:
    """Return what the header of a WAV, a FLAC or an MP3 declares. For an MP3, its frames are counted."""
    miniaudio = _library()
    try:
        if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
            found = miniaudio.wav_get_info(content)
            # A header may claim any length. The formats whose samples take less than a byte take 4 bits.
            most = len(content) // (found.sample_width * found.nchannels) if found.sample_width else 2 * len(content)
            return Description(found.sample_rate, *[min(found.num_frames, most)] * 2)
        if content.startswith(b"fLaC"):
            found = miniaudio.flac_get_info(content)
        elif content.startswith(b"ID3") or (len(content) > 1 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2):
            found = miniaudio.mp3_get_info(content)
        else:
            raise RefusedError("is not a supported sound; send WAV, MP3, FLAC, Ogg Vorbis, M4A or AAC")
    except (miniaudio.MiniaudioError, ZeroDivisionError, ValueError):
        raise RefusedError("is a damaged sound") from None
    return Description(found.sample_rate, found.num_frames, found.num_frames)


def _parts(content: bytes, limit: int) -> Iterator[Part]:
    miniaudio = _library()
    rate = _describe(content).rate
    count = 0
    try:
        for samples in miniaudio.stream_memory(content, miniaudio.SampleFormat.FLOAT32, 1, rate, _FRAMES):
            yield Part(samples, rate)
            count += len(samples)
            if count > limit:
                return
    except (miniaudio.MiniaudioError, ZeroDivisionError):
        raise RefusedError("is a damaged sound") from None
