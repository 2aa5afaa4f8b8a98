"""Events of `transcribe`."""

from typing import Literal

from msgspec import Struct

from .base import Count, Done, Event, Seconds
from .generation import Timings


class Word(Struct):
    """A spoken word."""

    text: str
    """The word as the segment's text has it, white space included."""
    start_s: Seconds
    end_s: Seconds


class Segment(Event, tag="segment", kw_only=True):
    """A part of a recording and its text. The texts of all segments, joined, are the transcript."""

    id: str
    index: Count
    start_s: Seconds
    end_s: Seconds
    text: str
    words: list[Word] | None = None
    """The segment's words, if the request asks for them."""


class TranscribeDone(Done, tag="done", kw_only=True):
    """The reply to `transcribe`."""

    finish_reason: Literal["stop", "cancelled", "timeout"]
    """`stop`: the end of the recording was reached."""
    duration_s: Seconds
    """Length of the recording; 0 if the request ended before it was known."""
    timings: Timings
    language: str | None = None
    """Code of the spoken language; `en` is English. Absent if the model does not report it."""
