"""What the speech lane asks of a model."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from lmwire_protocol import RequestError, Transcribe
from lmwire_protocol.events import Word

from .recording import Recording

CHARACTERS: Final = 2000
WORDS: Final = 200
"""Of one segment, so that its event is a line; see `lmwire_worker.engine.interface.TranscriptSegment`."""


@dataclass(frozen=True)
class Segment:
    """A stretch of a recording, in seconds, and what is said in it."""

    start_s: float
    end_s: float
    text: str
    words: list[Word] | None = None


@dataclass(frozen=True)
class Window:
    """One bounded piece of work on a recording."""

    done_s: float
    """How far the recording is written down."""
    segments: list[Segment] = field(default_factory=list)
    language: str | None = None
    """As a code, where it is known."""


class Listener(Protocol):
    """A model with its weights, that writes down recordings."""

    module: Any
    """Its network."""
    rate: int
    """Samples a second that it listens at."""

    def check(self, request: Transcribe) -> None:
        """Raises RequestError when it cannot do what is asked."""
        ...

    def listen(self, recording: Recording, request: Transcribe) -> Iterator[Window]:
        """Writes down a recording, a window at each turn, in order."""
        ...


def refuse(field: str, problem: str, code: str = "unsupported") -> RequestError:
    """What `check` raises."""
    return RequestError(code, f"{field}: {problem}", field=field)


def fitting(segment: Segment) -> Iterator[Segment]:
    """A segment, in parts where it is too long for an event: between words where there are any."""
    if len(segment.text) <= CHARACTERS and len(segment.words or ()) <= WORDS:
        yield segment
    elif segment.words:
        half = len(segment.words) // 2
        if half == 0:
            yield from fitting(Segment(segment.start_s, segment.end_s, segment.text))
            return
        for words in (segment.words[:half], segment.words[half:]):
            text = "".join(word.text for word in words)
            yield from fitting(Segment(words[0].start_s, words[-1].end_s, text, words))
    else:
        middle = (segment.start_s + segment.end_s) / 2
        half = len(segment.text) // 2
        yield from fitting(Segment(segment.start_s, middle, segment.text[:half]))
        yield from fitting(Segment(middle, segment.end_s, segment.text[half:]))
