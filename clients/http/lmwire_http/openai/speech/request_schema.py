"""The body of a speech request."""

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from lmwire import SpeakOptions

from ...errors import invalid_field
from ...http.context import RequestContext
from ...inference.options import given_fields

AudioFormat: TypeAlias = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]

_OPENAI_VOICES: Final = frozenset(
    {
        *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
        *("marin", "nova", "onyx", "sage", "shimmer", "verse", "default"),
    }
)
"""OpenAI's own voices, which no served model has and of which clients must name one, and a name for none of them."""


class VoiceReference(Struct, kw_only=True, forbid_unknown_fields=True):
    """A voice as an object."""

    id: str


class SpeechRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text to speak. Null fields count as absent."""

    model: str = ""
    """May be absent, or `default`, if exactly one model is served."""
    input: Annotated[str, Meta(min_length=1)]
    """The text."""
    voice: str | VoiceReference | None = None
    """A voice of the model. One of OpenAI's voices stands for the model's first voice, and counts as ignored."""
    instructions: str | None = None
    """A description of the voice or of the manner."""
    response_format: AudioFormat | None = None
    """The format. Without one it is mp3, or wav if the encoder is not installed."""
    speed: Annotated[float, Meta(ge=0.25, le=4)] | None = None
    stream_format: Literal["audio", "sse"] | None = None
    """`audio` sends the audio as it is made, `sse` sends it in events."""
    language: Annotated[str, Meta(min_length=1, max_length=32)] | None = None
    """lmwire's own field, as are the next two: the language of the text."""
    max_seconds: Annotated[int, Meta(ge=1, le=3600)] | None = None
    """Maximum length of the speech, in seconds."""
    seed: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None


def speech_options(context: RequestContext, body: SpeechRequest) -> SpeakOptions:
    """Return all options except the text, as the client library takes them.

    Args:
        context: The request's context, which reports a voice that is ignored.
        body: The request's body.

    Raises:
        ApiError: The voice is empty.
    """
    options: Any = given_fields(body, "instructions", "speed", "language", "max_seconds", "seed")
    voice = body.voice.id if isinstance(body.voice, VoiceReference) else body.voice
    if voice == "":
        raise invalid_field("voice: is empty; name one, or leave it out", "voice")
    if voice is not None and voice in _OPENAI_VOICES and not context.unknown_fields.are_refused:
        context.unknown_fields.ignore("", "voice")
    elif voice is not None:
        options["voice"] = voice
    return options


def client_field(field: str) -> str:
    """Return the client's name of a worker's field."""
    return "input" if field == "text" else field
