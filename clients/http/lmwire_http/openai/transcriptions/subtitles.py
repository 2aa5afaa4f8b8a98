"""Transcripts as subtitles."""

from collections.abc import Sequence

from lmwire_protocol import events


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
