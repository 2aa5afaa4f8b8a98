"""A transcript in the shapes that it can be asked for in."""

from collections.abc import Sequence
from math import ceil
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire_protocol import events


class DurationUsage(Struct, kw_only=True):
    """What was worked on."""

    type: Literal["duration"] = "duration"
    seconds: int


class Transcription(Struct, kw_only=True):
    """What is said."""

    text: str
    usage: DurationUsage


class TranscriptSegment(Struct, kw_only=True):
    """A stretch of the recording. Figures of OpenAI's model, as `avg_logprob`, are not known of others."""

    id: int
    start: float
    """In seconds."""
    end: float
    text: str


class TranscriptWord(Struct, kw_only=True):
    """A word."""

    word: str
    start: float
    """In seconds."""
    end: float


class VerboseTranscription(Struct, kw_only=True):
    """What is said, and when."""

    task: Literal["transcribe"] = "transcribe"
    language: str
    """A code, as `en`; empty when the model does not tell."""
    duration: float
    """In seconds."""
    text: str
    segments: list[TranscriptSegment] | UnsetType = UNSET
    words: list[TranscriptWord] | UnsetType = UNSET
    usage: DurationUsage


def join_text(segments: Sequence[events.Segment]) -> str:
    """The whole text."""
    return "".join(segment.text for segment in segments).strip()


def make_transcription(segments: Sequence[events.Segment], done: events.TranscribeDone) -> Transcription:
    """The text as JSON."""
    return Transcription(text=join_text(segments), usage=_usage(done))


def make_verbose_transcription(
    segments: Sequence[events.Segment], done: events.TranscribeDone, granularities: Sequence[str]
) -> VerboseTranscription:
    """The text with times."""
    told = [TranscriptSegment(id=each.index, start=each.start_s, end=each.end_s, text=each.text) for each in segments]
    words = [
        TranscriptWord(word=word.text.strip(), start=word.start_s, end=word.end_s)
        for segment in segments
        for word in segment.words or ()
    ]
    return VerboseTranscription(
        language=done.language or "",
        duration=done.duration_s,
        text=join_text(segments),
        segments=told if "segment" in granularities or not granularities else UNSET,
        words=words if "word" in granularities else UNSET,
        usage=_usage(done),
    )


def _usage(done: events.TranscribeDone) -> DurationUsage:
    return DurationUsage(seconds=ceil(done.duration_s))
