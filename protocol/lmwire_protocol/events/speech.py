"""Events of `speak`."""

from typing import Annotated, Literal

from msgspec import Meta

from .base import Count, Done, Event, Seconds
from .generation import Timings


class Audio(Event, tag="audio", kw_only=True):
    """A part of a speech. All parts, joined, are the speech."""

    id: str
    index: Count
    sample_rate: Annotated[int, Meta(ge=1)]
    """Samples per second. It is the same in all parts."""
    audio: str
    """Base64 of the samples: little-endian, 16 bits each, one channel."""


class SpeakDone(Done, tag="done", kw_only=True):
    """The reply to `speak`."""

    finish_reason: Literal["stop", "length", "cancelled", "timeout"]
    """`stop`: the whole text is spoken. `length`: `max_seconds` was reached, or the model's own limit."""
    duration_s: Seconds
    """Length of the speech."""
    seed: Count
    """The seed in use."""
    timings: Timings
