"""POST /v1/audio/speech."""

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

from msgspec import Struct

from lmwire import AsyncSpeech, speech_samples

from ...http.context import RequestContext
from ...http.endpoint import ByteStream, Endpoint, EventStream, Reply
from ...http.sse import WaitingEvent, comment, data_event
from ...inference.generation import check_capability, finish_reason, lease_worker
from .encoders import MEDIA_TYPES, choose_format, make_encoder
from .request_schema import AudioFormat, SpeechRequest, client_field, speech_options

_EMPTY_RATE: Final = 24_000
"""Sample rate of a file without samples."""


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


async def _create_speech(context: RequestContext, body: SpeechRequest) -> Reply:
    generation = SpeechGeneration(context, body)
    if body.stream_format == "sse":
        return EventStream(generation.frames(), WaitingEvent(comment))
    return ByteStream(generation.content(), generation.media_type)


SPEECH: Final = Endpoint(
    method="POST",
    path="/v1/audio/speech",
    summary="Speak a text.",
    handler=_create_speech,
    request_type=SpeechRequest,
    text_media_types=tuple(MEDIA_TYPES.values()),
    event_type=SpeechDelta | SpeechDone,
)
