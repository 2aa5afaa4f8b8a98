"""The command `speak`."""

from typing import Annotated

from msgspec import Meta

from .. import events
from ..limits import MAX_SPOKEN_S, SPEECH_PROMPT_BYTES, SPOKEN_TEXT_BYTES
from .base import Command, NonNegative, Positive


class Speak(Command, frozen=True):
    """Speak a text."""

    name = "speak"
    done = events.SpeakDone
    streams = (events.Audio,)

    text: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": SPOKEN_TEXT_BYTES})]
    """The text; at most 16,384 bytes."""
    voice: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    """The voice, by a name that the model has. Absent: the model's first voice."""
    language: Annotated[str, Meta(min_length=1, max_length=32)] | None = None
    """The language of the text, by a name that the model has. Absent: the model decides."""
    instructions: Annotated[str, Meta(extra_json_schema={"maxLength": SPEECH_PROMPT_BYTES})] = ""
    """A description of the voice or of the manner, such as `calm and slow`; at most 4,096 bytes."""
    speed: Annotated[float, Meta(ge=0.25, le=4)] = 1.0
    """Speed of the speech; 1 is the model's own."""
    max_seconds: Annotated[int, Meta(ge=1, le=MAX_SPOKEN_S)] = 600
    """Maximum length of the speech, in seconds."""
    seed: NonNegative | None = None
    """Seed of the random choices. Absent: a random one."""
    timeout_ms: Positive | None = None
    """Time limit after the request was read, waiting included, in milliseconds. The request then ends with its partial
    result."""

    def __post_init__(self) -> None:
        for name, limit in (("text", SPOKEN_TEXT_BYTES), ("instructions", SPEECH_PROMPT_BYTES)):
            if len(getattr(self, name).encode()) > limit:
                raise ValueError(f"{name}: must be a string of {int(name == 'text')} to {limit:,} bytes")
