"""POST /v1/audio/speech: speech from text, encoded as it comes."""

import asyncio
import base64
import importlib.util
import io
import wave
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

from msgspec import Meta, Struct

from lmwire import AsyncSpeech, SpeakOptions, speech_samples
from lmwire_protocol.extras import not_installed

from ..errors import invalid_field
from ..http.context import RequestContext
from ..http.endpoint import ByteStream, EventStream, Reply, endpoint
from ..http.sse import WaitingEvent, comment, data_event
from ..inference.generation import check_capability, finish_reason, lease_worker
from ..inference.options import given_fields

AudioFormat: TypeAlias = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]

_OPENAI_VOICES: Final = frozenset(
    {
        *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
        *("marin", "nova", "onyx", "sage", "shimmer", "verse", "default"),
    }
)
"""OpenAI's own voices, which no served model has and of which clients must name one, and a name for none of them."""
MEDIA_TYPES: Final[Mapping[AudioFormat, str]] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
_SAMPLE_BYTES: Final = 2
_EMPTY_RATE: Final = 24_000
"""Sample rate of a file without samples."""


class VoiceReference(Struct, kw_only=True, forbid_unknown_fields=True):
    """A voice as an object."""

    id: str


class SpeechRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text to speak. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    input: Annotated[str, Meta(min_length=1)]
    """The text."""
    voice: str | VoiceReference | None = None
    """A voice of the model. One of OpenAI's voices stands for the model's first voice, and counts as ignored."""
    instructions: str | None = None
    """A description of the voice or of the manner."""
    response_format: AudioFormat | None = None
    """The format. Without one it is mp3, or wav if the encoder is not installed."""
    speed: Annotated[float, Meta(ge=0.25, le=4)] | None = None
    stream_format: Literal["audio", "sse"] | None = None
    """`audio` sends the audio as it is made, `sse` sends it in events."""
    language: Annotated[str, Meta(min_length=1, max_length=32)] | None = None
    """lmwire's own field, as are the next two: the language of the text."""
    max_seconds: Annotated[int, Meta(ge=1, le=3600)] | None = None
    """Maximum length of the speech, in seconds."""
    seed: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None


def speech_options(context: RequestContext, body: SpeechRequest) -> SpeakOptions:
    """Return all options except the text, as the client library takes them.

    Args:
        context: The request's context, which reports a voice that is ignored.
        body: The request's body.

    Raises:
        ApiError: The voice is empty.
    """
    options: Any = given_fields(body, "instructions", "speed", "language", "max_seconds", "seed")
    voice = body.voice.id if isinstance(body.voice, VoiceReference) else body.voice
    if voice == "":
        raise invalid_field("voice: is empty; name one, or leave it out", "voice")
    if voice is not None and voice in _OPENAI_VOICES and not context.unknown_fields.are_refused:
        context.unknown_fields.ignore("", "voice")
    elif voice is not None:
        options["voice"] = voice
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field."""
    return "input" if field == "text" else field


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


class SpeechDelta(Struct, kw_only=True, tag_field="type", tag="speech.audio.delta"):
    """The next part of the audio."""

    audio: str
    """Base64 of the file's next bytes."""


class SpeechDone(Struct, kw_only=True, tag_field="type", tag="speech.audio.done"):
    """The last event of a stream."""


class SpeechGeneration:
    """The speech of one text.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: SpeechRequest) -> None:
        self._context, self._body = context, body
        self._options = speech_options(context, body)
        self._format: AudioFormat = choose_format(body.response_format)
        self.media_type = MEDIA_TYPES[self._format]

    async def content(self) -> AsyncGenerator[bytes]:
        """Yield the file as it is made.

        Raises:
            ApiError: The speech has failed.
        """
        encoder = None
        async with self._speech() as speech:
            async for part in speech:
                encoder = encoder or make_encoder(self._format, part.sample_rate)
                # Encoding takes some milliseconds, in which other requests go on.
                if encoded := await asyncio.to_thread(encoder.add, speech_samples(part)):
                    yield encoded
            finish_reason(speech.result.finish_reason)
        yield (encoder or make_encoder(self._format, _EMPTY_RATE)).finish()

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the file in events, as it is made."""
        async with aclosing(self.content()) as parts:
            async for part in parts:
                if part:
                    yield data_event(SpeechDelta(audio=base64.b64encode(part).decode()))
        yield data_event(SpeechDone())

    @asynccontextmanager
    async def _speech(self) -> AsyncGenerator[AsyncSpeech]:
        async with lease_worker(self._context, self._body.model, rename=client_field) as lease:
            check_capability(lease, "speak", self._body.model)
            async with lease.worker.speak(self._body.input, **self._options) as speech:
                speech.when_ended(lease.release)
                yield speech


@endpoint("POST", "/v1/audio/speech", text_media_types=tuple(MEDIA_TYPES.values()), event_type=SpeechDelta | SpeechDone)
async def create_speech(context: RequestContext, body: SpeechRequest) -> Reply:
    """Speak a text."""
    generation = SpeechGeneration(context, body)
    if body.stream_format == "sse":
        return EventStream(generation.frames(), WaitingEvent(comment))
    return ByteStream(generation.content(), generation.media_type)
