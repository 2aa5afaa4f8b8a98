"""The mock's vectors, transcripts and speech, a step each."""

import hashlib
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from lmwire_protocol import Embed, ImagePart, Media, RequestError, Speak, TextPart, TokensPart, Transcribe
from lmwire_protocol.events import Word

from ..engine.interface import EmbeddingOutput, RunnerEvent, SpeechOutput, TranscriptionProgress, TranscriptSegment
from .prompts import words
from .replies import Reply

DIMENSIONS = 8
"""Dimensions of a vector that no rule gives."""
WORD_SECONDS = 1.0
"""Duration of each word of a recording."""

_Acts = Iterator[list[RunnerEvent] | float]


def told(media: Media) -> str:
    """Return the text that stands for media: the path, the URL, or `data`."""
    return media.path or media.url or "data"


def text_of(part: str | TextPart | ImagePart | TokensPart) -> str:
    """Return the text that stands for an input."""
    if isinstance(part, str):
        return part
    if isinstance(part, TokensPart):
        return "".join(f"{id} " for id in part.token_ids)
    return part.text if isinstance(part, TextPart) else told(part.media)


def embed(key: int, request: Embed, reply: Reply) -> _Acts:
    """Yield a vector for each input, in order.

    Args:
        key: The request's key.
        request: The request.
        reply: The scripted reply.

    Raises:
        RequestError: invalid_request, before the first vector.
    """
    texts = [text_of(part) for part in request.input]
    vectors = [_vector(text, place, reply) for place, text in enumerate(texts)]
    width = min(map(len, vectors))
    if request.dimensions is not None and request.dimensions > width:
        problem = f"dimensions: this model's vectors have {width} numbers, not {request.dimensions}"
        raise RequestError("invalid_request", problem, field="dimensions")
    return _embed(key, request, [vector[: request.dimensions] for vector in vectors], texts, reply)


def transcribe(key: int, request: Transcribe, reply: Reply) -> _Acts:
    """Yield a segment for each sentence of the reply, or of the recording's name.

    Args:
        key: The request's key.
        request: The request.
        reply: The scripted reply.
    """
    spoken = [] if reply.error and reply.text is None else words(reply.text or told(request.audio))
    duration_s = len(spoken) * WORD_SECONDS
    language = request.language or "en"
    yield [TranscriptionProgress(key, 0.0, duration_s, language)]
    if reply.delay_ms:
        yield reply.delay_ms / 1000
    for stage in reply.progress:
        yield [TranscriptionProgress(key, stage.current, duration_s if stage.total is None else stage.total, language)]
        yield stage.delay_ms / 1000
    at = 0.0
    for sentence in _sentences(spoken):
        yield reply.token_ms / 1000 * len(sentence)
        heard = TranscriptSegment(key, at, at + len(sentence) * WORD_SECONDS, "".join(sentence))
        if request.words:
            starts = [at + place * WORD_SECONDS for place in range(len(sentence))]
            pairs = zip(sentence, starts, strict=True)
            heard.words = [Word(word, start, start + WORD_SECONDS) for word, start in pairs]
        at = heard.end_s
        yield [heard, TranscriptionProgress(key, at, duration_s, language)]
    if not reply.has_no_end:
        yield [TranscriptionProgress(key, duration_s, duration_s, is_complete=True)]


def _embed(key: int, request: Embed, vectors: Sequence[list[float]], texts: Sequence[str], reply: Reply) -> _Acts:
    if reply.delay_ms:
        yield reply.delay_ms / 1000
    count = len(vectors) - reply.has_no_end  # the last vector would end the request
    for index in range(0 if reply.error and not reply.vectors else count):
        tokens = max(len(words(texts[index])), 1)
        if reply.token_ms:
            yield reply.token_ms / 1000 * tokens
        vector = _scaled(vectors[index]) if request.normalize else vectors[index]
        yield [EmbeddingOutput(key, index, array("f", vector), tokens)]


def _vector(text: str, place: int, reply: Reply) -> list[float]:
    if reply.vectors:
        return reply.vectors[place % len(reply.vectors)]
    digest = hashlib.sha256(text.encode()).digest()
    return [(2 * int.from_bytes(digest[at : at + 2]) + 1) / 65536 - 1 for at in range(0, 2 * DIMENSIONS, 2)]


def _scaled(vector: Sequence[float]) -> list[float]:
    length = sum(number * number for number in vector) ** 0.5
    return [number / length for number in vector] if length else list(vector)


def _sentences(spoken: Sequence[str]) -> Iterator[list[str]]:
    sentence: list[str] = []
    for word in spoken:
        sentence.append(word)
        if re.search(r"[.!?]\s*$", word):
            yield sentence
            sentence = []
    if sentence:
        yield sentence


# Speech: a tone that depends on the word alone.

SAMPLE_RATE: Final = 8000
WORD_SAMPLES: Final = 800
"""Samples of each word."""
_LOUDNESS: Final = 8000


def speak(key: int, request: Speak, reply: Reply) -> _Acts:
    """Yield a part for each word of the reply, or of the text.

    Args:
        key: The request's key.
        request: The request.
        reply: The scripted reply.
    """
    if reply.delay_ms:
        yield reply.delay_ms / 1000
    spoken = [] if reply.error and reply.text is None else words(reply.text or request.text)
    limit = request.max_seconds * SAMPLE_RATE // WORD_SAMPLES
    for word in spoken[:limit]:
        if reply.token_ms:
            yield reply.token_ms / 1000
        yield [SpeechOutput(key, _tone(word), SAMPLE_RATE)]
    if not reply.has_no_end:
        yield [SpeechOutput(key, b"", SAMPLE_RATE, "length" if len(spoken) > limit else "stop")]


def _tone(word: str) -> bytes:
    half = 4 + hashlib.sha256(word.strip().encode()).digest()[0] % 32
    return array("h", [_LOUDNESS if place // half % 2 else -_LOUDNESS for place in range(WORD_SAMPLES)]).tobytes()
