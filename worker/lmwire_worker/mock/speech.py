"""The mock's speech, a step for each word: a tone that depends on the word alone."""

import hashlib
from array import array
from collections.abc import Iterator
from typing import Final

from lmwire_protocol import Speak

from ..engine.interface import RunnerEvent, SpeechOutput
from .prompts import words
from .replies import Reply

SAMPLE_RATE: Final = 8000
WORD_SAMPLES: Final = 800
"""Samples of each word."""
_LOUDNESS: Final = 8000

_Acts = Iterator[list[RunnerEvent] | float]


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
