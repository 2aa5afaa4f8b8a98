"""POST /v1/audio/transcriptions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from lmwire import AsyncTranscript, TranscribeOptions
from lmwire_protocol import events

from ...http.context import RequestContext
from ...http.endpoint import Endpoint
from ...http.replies import EventStream, Json, Plain, Reply
from ...http.sse import data_event
from ...inference.worker_lease import lease_for
from ..usage import finish_reason
from .request_schema import TranscriptionBody, renamed, transcription_options
from .response_schema import Transcription, VerboseTranscription, text_of, transcription, verbose
from .subtitles import srt, vtt


class TextDelta(Struct, kw_only=True, tag_field="type", tag="transcript.text.delta"):
    """What is said next."""

    delta: str


class TextDone(Struct, kw_only=True, tag_field="type", tag="transcript.text.done"):
    """All that is said, in the stream's last event."""

    text: str


async def _serve(context: RequestContext, body: TranscriptionBody) -> Reply:
    options = transcription_options(body)
    if body.stream:
        return EventStream(_frames(context, body, options))
    async with _transcript(context, body, options) as said:
        segments = [segment async for segment in said]
        return _written(body, segments, _whole(said.result))


async def _frames(context: RequestContext, body: TranscriptionBody, options: TranscribeOptions) -> AsyncIterator[bytes]:
    segments: list[events.Segment] = []
    async with _transcript(context, body, options) as said:
        async for segment in said:
            text = segment.text if segments else segment.text.lstrip()
            segments.append(segment)
            yield data_event(TextDelta(delta=text))
        _whole(said.result)
        yield data_event(TextDone(text=text_of(segments)))


@asynccontextmanager
async def _transcript(
    context: RequestContext, body: TranscriptionBody, options: TranscribeOptions
) -> AsyncIterator[AsyncTranscript]:
    async with (
        lease_for(context, body.model, rename=renamed) as lease,
        lease.worker.transcribe(body.file, **options) as said,
    ):
        said.when_ended(lease.release)
        yield said


def _whole(done: events.TranscribeDone) -> events.TranscribeDone:
    """Raises ApiError where the server has cancelled the transcript."""
    finish_reason(done.finish_reason)
    return done


def _written(body: TranscriptionBody, segments: list[events.Segment], done: events.TranscribeDone) -> Reply:
    match body.response_format:
        case "text":
            return Plain(f"{text_of(segments)}\n".encode())
        case "srt":
            return Plain(srt(segments).encode(), "application/x-subrip; charset=utf-8")
        case "vtt":
            return Plain(vtt(segments).encode(), "text/vtt; charset=utf-8")
        case "verbose_json":
            return Json(verbose(segments, done, body.timestamp_granularities or ()))
        case _:
            return Json(transcription(segments, done))


TRANSCRIPTIONS: Final = Endpoint(
    method="POST",
    path="/v1/audio/transcriptions",
    summary="Write down what is said in a recording.",
    handler=_serve,
    request_type=TranscriptionBody,
    is_form=True,
    response_type=Transcription | VerboseTranscription,
    text_media_types=("text/plain", "application/x-subrip", "text/vtt"),
    event_type=TextDelta | TextDone,
)
