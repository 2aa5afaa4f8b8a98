"""The interface of a speech model."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from lmwire_protocol import RequestError, Transcribe
from lmwire_protocol.events import Word

from .recording import Recording

MAX_CHARACTERS: Final = 2000
"""Characters of one segment, so that its event fits into a line."""
MAX_WORDS: Final = 200
"""Words of one segment, for the same reason; see `lmwire_worker.engine.interface.TranscriptSegment`."""


@dataclass(frozen=True)
class Segment:
    """A part of a recording, in seconds, with its text."""

    start_s: float
    end_s: float
    text: str
    words: list[Word] | None = None


@dataclass(frozen=True)
class Window:
    """The result of one step on a recording."""

    done_s: float
    """Seconds of the recording that are transcribed."""
    segments: list[Segment] = field(default_factory=list)
    language: str | None = None
    """The language's code, if it is known."""


class Transcriber(Protocol):
    """A speech model with its weights in memory."""

    module: Any
    """The network."""
    sample_rate: int
    """Samples per second of the recordings that it takes."""

    def check(self, request: Transcribe) -> None:
        """Check that the model supports the request.

        Raises:
            RequestError: invalid_request, unsupported.
        """
        ...

    def transcribe(self, recording: Recording, request: Transcribe) -> Iterator[Window]:
        """Transcribe a recording, one window for each step.

        Args:
            recording: The recording at `sample_rate`.
            request: The request, which passed `check`.

        Yields:
            Windows in the order of the recording.
        """
        ...


def request_error(field: str, problem: str, code: str = "unsupported") -> RequestError:
    """Return the error that `check` raises.

    Args:
        field: The field at fault.
        problem: The problem, and its remedy.
        code: The protocol's error code.
    """
    return RequestError(code, f"{field}: {problem}", field=field)


def split_segment(segment: Segment) -> Iterator[Segment]:
    """Yield a segment, split if it is too long for an event: between words if it has any."""
    if len(segment.text) <= MAX_CHARACTERS and len(segment.words or ()) <= MAX_WORDS:
        yield segment
    elif segment.words:
        half = len(segment.words) // 2
        if half == 0:
            yield from split_segment(Segment(segment.start_s, segment.end_s, segment.text))
            return
        for words in (segment.words[:half], segment.words[half:]):
            text = "".join(word.text for word in words)
            yield from split_segment(Segment(words[0].start_s, words[-1].end_s, text, words))
    else:
        middle = (segment.start_s + segment.end_s) / 2
        half = len(segment.text) // 2
        yield from split_segment(Segment(segment.start_s, middle, segment.text[:half]))
        yield from split_segment(Segment(middle, segment.end_s, segment.text[half:]))
