"""The command `transcribe`."""

from typing import Annotated

from msgspec import Meta

from .. import events
from ..limits import SPEECH_PROMPT_BYTES
from ..messages import Media
from .base import Command, Positive


class Transcribe(Command, frozen=True):
    """Transcribe the speech of a recording."""

    name = "transcribe"
    done = events.TranscribeDone
    streams = (events.Progress, events.Segment)

    audio: Media
    """The recording."""
    language: Annotated[str, Meta(min_length=2, max_length=32)] | None = None
    """The spoken language, such as `en` or `english`. Absent: the model detects it."""
    prompt: Annotated[str, Meta(extra_json_schema={"maxLength": SPEECH_PROMPT_BYTES})] = ""
    """Earlier speech, or the spelling of names; at most 4,096 bytes."""
    temperature: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Sampling temperature. 0 takes the most probable words."""
    words: bool = False
    """Send the times of each word as well."""
    timeout_ms: Positive | None = None
    """Time limit after the request was read, waiting included, in milliseconds. The request then ends with its partial
    result."""

    def __post_init__(self) -> None:
        if len(self.prompt.encode()) > SPEECH_PROMPT_BYTES:
            raise ValueError(f"prompt: must be a string of 0 to {SPEECH_PROMPT_BYTES:,} bytes")
