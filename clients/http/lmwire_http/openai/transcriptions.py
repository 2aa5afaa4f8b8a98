"""POST /v1/audio/transcriptions: the text of a recording, in OpenAI's JSON formats or as subtitles."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import ceil
from typing import Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire import AsyncTranscript, TranscribeOptions
from lmwire_protocol import events

from ..errors import invalid_field
from ..http.context import RequestContext
from ..http.endpoint import Json, Plain, Reply, Streamable, endpoint
from ..http.sse import WaitingEvent, comment, data_event
from ..inference.generation import check_capability, finish_reason, lease_worker
from ..inference.options import given_fields
from ..limits import ShortList
from .request_fields import reject_fields

_UNSUPPORTED: Final = {
    "include": "log-probabilities of transcripts are not computed here; leave it out",
    "known_speaker_names": "speakers are not distinguished; leave it out",
    "known_speaker_references": "speakers are not distinguished; leave it out",
    "keywords": "name them in `prompt`",
    "languages": "give one as `language`, or leave it out for the model to find out",
}


class TranscriptionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A recording to transcribe."""

    file: bytes
    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    language: str | None = None
    """The spoken language. The model detects it if it is absent, or empty as some clients' forms send it."""
    prompt: str | None = None
    temperature: float | None = None
    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] | None = None
    timestamp_granularities: ShortList[Literal["word", "segment"]] | None = None
    stream: bool | None = None
    chunking_strategy: Any = None
    """Ignored: recordings of any length are processed in windows."""

    include: Any = None
    """Not supported, as are the next four fields. The error names an alternative."""
    known_speaker_names: Any = None
    known_speaker_references: Any = None
    keywords: Any = None
    languages: Any = None

    @property
    def words(self) -> bool:
        """Return whether the response needs the time of each word."""
        return "word" in (self.timestamp_granularities or ())


def transcription_options(body: TranscriptionRequest) -> TranscribeOptions:
    """Return all options except the recording, as the client library takes them.

    Raises:
        ApiError: A field is not supported, or fields contradict each other.
    """
    reject_fields(body, _UNSUPPORTED)
    if body.timestamp_granularities and body.response_format != "verbose_json":
        problem = "is for the response_format `verbose_json`; ask for that, or leave it out"
        raise invalid_field(f"timestamp_granularities: {problem}", "timestamp_granularities")
    if body.stream and body.response_format not in {None, "json", "text"}:
        raise invalid_field("response_format: must be json or text for a stream", "response_format")
    options: Any = {**given_fields(body, "prompt", "temperature"), "words": body.words}
    if body.language:
        options["language"] = body.language
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field."""
    if field.startswith("audio"):
        return "file"
    return "timestamp_granularities" if field == "words" else field


class DurationUsage(Struct, kw_only=True):
    """Length of the recording."""

    type: Literal["duration"] = "duration"
    seconds: int


class Transcription(Struct, kw_only=True):
    """The text of a recording."""

    text: str
    usage: DurationUsage


class TranscriptSegment(Struct, kw_only=True):
    """A part of the recording. Statistics of OpenAI's model, for example `avg_logprob`, are not available."""

    id: int
    start: float
    """Start in seconds."""
    end: float
    text: str


class TranscriptWord(Struct, kw_only=True):
    """A word."""

    word: str
    start: float
    """Start in seconds."""
    end: float


class VerboseTranscription(Struct, kw_only=True):
    """The text of a recording with times."""

    task: Literal["transcribe"] = "transcribe"
    language: str
    """A language code, such as `en`; empty if the model does not report one."""
    duration: float
    """Length in seconds."""
    text: str
    segments: list[TranscriptSegment] | UnsetType = UNSET
    words: list[TranscriptWord] | UnsetType = UNSET
    usage: DurationUsage


def join_text(segments: Sequence[events.Segment]) -> str:
    """Return the text of all segments."""
    return "".join(segment.text for segment in segments).strip()


def make_transcription(segments: Sequence[events.Segment], done: events.TranscribeDone) -> Transcription:
    """Return the text as a JSON response.

    Args:
        segments: The worker's segments.
        done: The worker's result.
    """
    return Transcription(text=join_text(segments), usage=_usage(done))


def make_verbose_transcription(
    segments: Sequence[events.Segment], done: events.TranscribeDone, granularities: Sequence[str]
) -> VerboseTranscription:
    """Return the text with times as a JSON response.

    Args:
        segments: The worker's segments.
        done: The worker's result.
        granularities: The requested times: `segment`, `word`, or none for segments.
    """
    shown = [TranscriptSegment(id=each.index, start=each.start_s, end=each.end_s, text=each.text) for each in segments]
    words = [
        TranscriptWord(word=word.text.strip(), start=word.start_s, end=word.end_s)
        for segment in segments
        for word in segment.words or ()
    ]
    return VerboseTranscription(
        language=done.language or "",
        duration=done.duration_s,
        text=join_text(segments),
        segments=shown if "segment" in granularities or not granularities else UNSET,
        words=words if "word" in granularities else UNSET,
        usage=_usage(done),
    )


def _usage(done: events.TranscribeDone) -> DurationUsage:
    return DurationUsage(seconds=ceil(done.duration_s))


def srt(segments: Sequence[events.Segment]) -> str:
    """Return subtitles in the SubRip format."""
    return "".join(f"{number}\n{_cue(segment, ',')}\n" for number, segment in enumerate(segments, 1))


def vtt(segments: Sequence[events.Segment]) -> str:
    """Return subtitles in the WebVTT format."""
    return "WEBVTT\n\n" + "".join(f"{_cue(segment, '.')}\n" for segment in segments)


def _cue(segment: events.Segment, point: str) -> str:
    # An empty line would end the cue, and an arrow would be taken for its times.
    text = " ".join(segment.text.split()).replace("-->", "->")
    return f"{_time(segment.start_s, point)} --> {_time(segment.end_s, point)}\n{text}\n"


def _time(seconds: float, point: str) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{milliseconds // 1000:02}{point}{milliseconds % 1000:03}"


class TextDelta(Struct, kw_only=True, tag_field="type", tag="transcript.text.delta"):
    """The next part of the text."""

    delta: str


class TextDone(Struct, kw_only=True, tag_field="type", tag="transcript.text.done"):
    """The whole text, in the last event of a stream."""

    text: str


class TranscriptGeneration(Streamable[TranscriptionRequest]):
    """The transcription of one recording."""

    def __init__(self, context: RequestContext, body: TranscriptionRequest) -> None:
        super().__init__(context, body)
        self._options = transcription_options(body)
        self.waiting = WaitingEvent(comment)

    async def whole(self) -> Reply:
        """Return the whole transcription in the requested format."""
        async with self._transcript() as transcript:
            segments = [segment async for segment in transcript]
            finish_reason(transcript.result.finish_reason)  # an error if the server has cancelled it
            return _format(self._body, segments, transcript.result)

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the text as it comes."""
        segments: list[events.Segment] = []
        async with self._transcript() as transcript:
            async for segment in transcript:
                text = segment.text if segments else segment.text.lstrip()
                segments.append(segment)
                yield data_event(TextDelta(delta=text))
            finish_reason(transcript.result.finish_reason)  # an error if the server has cancelled it
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


@endpoint(
    "POST",
    "/v1/audio/transcriptions",
    is_form=True,
    response_type=Transcription | VerboseTranscription,
    text_media_types=("text/plain", "application/x-subrip", "text/vtt"),
    event_type=TextDelta | TextDone,
)
async def create_transcription(context: RequestContext, body: TranscriptionRequest) -> Reply:
    """Transcribe a recording."""
    return await TranscriptGeneration(context, body).reply(stream=body.stream)
