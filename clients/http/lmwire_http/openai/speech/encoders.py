"""Encoders of speech: 16-bit samples to a format of audio, as they come."""

import importlib.util
import io
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from lmwire_protocol.extras import not_installed

from ...errors import invalid_field
from .request_schema import AudioFormat

MEDIA_TYPES: Final[Mapping[AudioFormat, str]] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
_SAMPLE_BYTES: Final = 2


class AudioEncoder(Protocol):
    """Encoder of one speech."""

    def add(self, samples: bytes) -> bytes:
        """Return the next part of the file; empty if there is none yet.

        Args:
            samples: Little-endian, 16 bits each, one channel.
        """
        ...

    def finish(self) -> bytes:
        """Return the end of the file."""
        ...


@dataclass(frozen=True)
class _Codec:
    """FFmpeg's names of a format."""

    container: str
    codec: str
    rate: int | None = None
    """The sample rate that the codec needs; None for any."""


_CODECS: Final[Mapping[str, _Codec]] = {
    "mp3": _Codec("mp3", "libmp3lame"),
    "opus": _Codec("ogg", "libopus", 48_000),
    "aac": _Codec("adts", "aac"),
    "flac": _Codec("flac", "flac"),
}


def choose_format(requested: AudioFormat | None) -> AudioFormat:
    """Return the format of a speech.

    Args:
        requested: The request's format; None for the API's default, if it can be encoded.

    Raises:
        ApiError: The encoder is not installed.
    """
    can_compress = importlib.util.find_spec("av") is not None
    if requested in _CODECS and not can_compress:
        problem = not_installed("PyAV", "aac", purpose=f"makes {requested}")
        raise invalid_field(f"response_format: ask for wav or pcm: {problem}", "response_format")
    if requested is not None:
        return requested
    return "mp3" if can_compress else "wav"


def make_encoder(audio_format: AudioFormat, sample_rate: int) -> AudioEncoder:
    """Return a new encoder.

    Args:
        audio_format: The format, as `choose_format` returns it.
        sample_rate: Samples per second.
    """
    if audio_format in _CODECS:
        return _CompressingEncoder(_CODECS[audio_format], sample_rate)
    return _WavEncoder(sample_rate) if audio_format == "wav" else _PcmEncoder()


class _PcmEncoder:
    def add(self, samples: bytes) -> bytes:
        return samples

    def finish(self) -> bytes:
        return b""


class _WavEncoder:
    """Encoder that returns the whole file at the end: its head has the length."""

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._samples: list[bytes] = []

    def add(self, samples: bytes) -> bytes:
        self._samples.append(samples)
        return b""

    def finish(self) -> bytes:
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(_SAMPLE_BYTES)
            writer.setframerate(self._sample_rate)
            writer.writeframes(b"".join(self._samples))
        return file.getvalue()


class _Sink:
    """A file that can only be written, so that FFmpeg does not go back to change its head."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, content: bytes) -> int:
        self._written += content
        return len(content)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


class _CompressingEncoder:
    def __init__(self, codec: _Codec, sample_rate: int) -> None:
        import av  # PyAV need not be installed

        self._av: Any = av
        self._sample_rate = sample_rate
        self._sink = _Sink()
        self._container: Any = av.open(self._sink, "w", format=codec.container)
        self._stream: Any = self._container.add_stream(codec.codec, rate=codec.rate or sample_rate, layout="mono")
        self._position = 0

    def add(self, samples: bytes) -> bytes:
        count = len(samples) // _SAMPLE_BYTES
        frame = self._av.AudioFrame(format="s16", layout="mono", samples=count)
        frame.planes[0].update(samples)
        frame.sample_rate = self._sample_rate
        frame.pts = self._position
        self._position += count
        self._container.mux(self._stream.encode(frame))
        return self._sink.take()

    def finish(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.take()
