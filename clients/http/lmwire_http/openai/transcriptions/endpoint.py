"""POST /v1/audio/transcriptions."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from lmwire import AsyncTranscript
from lmwire_protocol import events

from ...http.context import RequestContext
from ...http.endpoint import Endpoint, Json, Plain, Reply, reply_with
from ...http.sse import WaitingEvent, comment, data_event
from ...inference.generation import check_capability, finish_reason, lease_worker
from .request_schema import TranscriptionRequest, client_field, transcription_options
from .response_schema import (
    Transcription,
    VerboseTranscription,
    join_text,
    make_transcription,
    make_verbose_transcription,
)
from .subtitles import srt, vtt


class TextDelta(Struct, kw_only=True, tag_field="type", tag="transcript.text.delta"):
    """The next part of the text."""

    delta: str


class TextDone(Struct, kw_only=True, tag_field="type", tag="transcript.text.done"):
    """The whole text, in the last event of a stream."""

    text: str


class TranscriptGeneration:
    """The transcription of one recording.

    Args:
        context: The request's context.
        body: The request's body.

    Raises:
        ApiError: The request is invalid.
    """

    def __init__(self, context: RequestContext, body: TranscriptionRequest) -> None:
        self._context, self._body = context, body
        self._options = transcription_options(body)
        self.waiting = WaitingEvent(comment)

    async def whole(self) -> Reply:
        """Return the whole transcription in the requested format."""
        async with self._transcript() as transcript:
            segments = [segment async for segment in transcript]
            return _format(self._body, segments, _check_cancelled(transcript.result))

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the text as it comes."""
        segments: list[events.Segment] = []
        async with self._transcript() as transcript:
            async for segment in transcript:
                text = segment.text if segments else segment.text.lstrip()
                segments.append(segment)
                yield data_event(TextDelta(delta=text))
            _check_cancelled(transcript.result)
            yield data_event(TextDone(text=join_text(segments)))

    @asynccontextmanager
    async def _transcript(self) -> AsyncGenerator[AsyncTranscript]:
        async with lease_worker(self._context, self._body.model, rename=client_field, has_media=True) as lease:
            check_capability(lease, "transcribe", self._body.model)
            decoded = lease.media_decoded
            async with lease.worker.transcribe(
                self._body.file, on_progress=lambda _: decoded(), **self._options
            ) as transcript:
                transcript.when_ended(lease.release)
                yield transcript


def _check_cancelled(done: events.TranscribeDone) -> events.TranscribeDone:
    """Return the result. Raise ApiError if the server has cancelled the transcription."""
    finish_reason(done.finish_reason)
    return done


def _format(body: TranscriptionRequest, segments: Sequence[events.Segment], done: events.TranscribeDone) -> Reply:
    match body.response_format:
        case "text":
            return Plain(f"{join_text(segments)}\n".encode())
        case "srt":
            return Plain(srt(segments).encode(), "application/x-subrip; charset=utf-8")
        case "vtt":
            return Plain(vtt(segments).encode(), "text/vtt; charset=utf-8")
        case "verbose_json":
            return Json(make_verbose_transcription(segments, done, body.timestamp_granularities or ()))
        case _:
            return Json(make_transcription(segments, done))


async def _create_transcription(context: RequestContext, body: TranscriptionRequest) -> Reply:
    return await reply_with(TranscriptGeneration(context, body), stream=body.stream)


TRANSCRIPTIONS: Final = Endpoint(
    method="POST",
    path="/v1/audio/transcriptions",
    summary="Transcribe a recording.",
    handler=_create_transcription,
    request_type=TranscriptionRequest,
    is_form=True,
    response_type=Transcription | VerboseTranscription,
    text_media_types=("text/plain", "application/x-subrip", "text/vtt"),
    event_type=TextDelta | TextDone,
)
