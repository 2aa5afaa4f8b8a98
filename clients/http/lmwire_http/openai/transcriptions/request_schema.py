"""The body of a transcription request."""

from typing import Any, Final, Literal

from msgspec import Struct

from lmwire import TranscribeOptions

from ...errors import invalid_field
from ...inference.options import given_fields
from ...limits import ShortList
from ..unsupported_fields import reject_fields

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
