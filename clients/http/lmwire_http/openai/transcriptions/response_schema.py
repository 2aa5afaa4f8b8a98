"""Transcriptions in the JSON formats of OpenAI's API."""

from collections.abc import Sequence
from math import ceil
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lmwire_protocol import events


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
