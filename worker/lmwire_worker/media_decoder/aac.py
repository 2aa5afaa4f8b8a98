"""Decode AAC, alone or in an MP4 file (M4A), and ALAC in an MP4 file, with FFmpeg."""

import io
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from .pipes import MissingLibraryError, RefusedError
from .sounds import Description, Part

CODECS: Final = ("aac", "alac")
SCALES: Final = {"fltp": 1, "s16p": 2**15, "s32p": 2**31}
"""The formats of samples that these codecs produce, and their largest values."""
PACKET_SAMPLES: Final = 1024
"""Samples of a packet of AAC."""
MIN_PACKET_SAMPLES: Final = 128
"""Smallest average of samples in a packet that is read. Encoders put 480 or more into each."""
SPARE_PACKETS: Final = 64
"""Packets without samples that a file may have, such as those before its beginning."""
SPARE_SAMPLES: Final = 8 * PACKET_SAMPLES
"""Silence that encoders add beyond what a file declares, in samples."""
DOUBLED: Final = 2
"""Factor of the rate that a decoder may add to what an AAC header declares: HE-AAC does that."""
_RATES: Final = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)
_ADTS_HEADER_BYTES: Final = 7


def describe_mp4(content: bytes) -> Description:
    """Return what an MP4 file declares of its first sound.

    Raises:
        RefusedError: The file is damaged, has another codec, or has too many packets for its samples.
        MissingLibraryError: PyAV is not installed.
    """
    with _opened(content, "mov") as (_, stream):
        rate = stream.codec_context.sample_rate
        samples = int((stream.duration or 0) * stream.time_base * rate)
        packets = stream.frames
        if packets > SPARE_PACKETS + samples / MIN_PACKET_SAMPLES:
            raise RefusedError(f"has {packets:,} packets for {samples:,} samples; encode it anew")
        factor = DOUBLED if stream.codec_context.name == "aac" else 1
        return Description(rate, samples, factor * samples + SPARE_SAMPLES)


def describe_adts(content: bytes) -> Description:
    """Return the samples of a bare AAC file, from the headers of its packets.

    Raises:
        RefusedError: The first header is damaged.
    """
    at = packets = 0
    rate = _adts_rate(content)
    while at + _ADTS_HEADER_BYTES <= len(content) and content[at] == 0xFF and content[at + 1] & 0xF6 == 0xF0:
        size = (content[at + 3] & 0x03) << 11 | content[at + 4] << 3 | content[at + 5] >> 5
        if size < _ADTS_HEADER_BYTES:
            break
        packets += 1 + (content[at + 6] & 0x03)
        at += size
    samples = packets * PACKET_SAMPLES
    return Description(rate, samples, DOUBLED * samples + SPARE_SAMPLES)


def _adts_rate(content: bytes) -> int:
    index = content[2] >> 2 & 0x0F if len(content) > _ADTS_HEADER_BYTES else len(_RATES)
    if index >= len(_RATES):
        raise RefusedError("is a damaged sound")
    return _RATES[index]


def _parts(container: str, content: bytes, limit: int) -> Iterator[Part]:
    """Yield the samples, up to the limit or the first damage."""
    with _opened(content, container) as (file, stream):
        import av.error

        rate = count = 0
        with suppress(av.error.FFmpegError):  # a recording that breaks off is read as far as it goes
            for frame in file.decode(stream):
                rate = rate or frame.sample_rate
                if frame.sample_rate != rate or count > limit:
                    break
                channels = frame.to_ndarray()  # [channels, n]
                samples = channels.mean(axis=0, dtype="float64") / SCALES[frame.format.name]
                yield Part(array("f", samples.astype("<f4").tobytes()), rate)
                count += frame.samples
        if not rate:
            raise RefusedError("is a damaged sound")


parts_of_mp4 = partial(_parts, "mov")
parts_of_adts = partial(_parts, "aac")


@contextmanager
def _opened(content: bytes, container: str) -> Iterator[tuple[Any, Any]]:
    """Yield the file and its first sound."""
    try:
        import av.error
        import numpy  # noqa: F401 : converts the samples
    except (ImportError, OSError):
        raise MissingLibraryError("PyAV", "aac", "reads M4A and AAC") from None
    try:
        with av.open(io.BytesIO(content), format=container) as file:
            stream = next(iter(file.streams.audio), None)
            if stream is None or stream.codec_context.name not in CODECS:
                problem = "has a sound in another format than AAC or ALAC"
                raise RefusedError(f"{problem}; send one of these, WAV, MP3 or FLAC")
            stream.codec_context.thread_count = 1
            yield file, stream
    except MemoryError:
        raise
    except (av.error.FFmpegError, ValueError, KeyError, OverflowError):
        raise RefusedError("is a damaged sound") from None
