"""Parakeet, in windows of half a minute. Each begins where the last complete sentence ends."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import mlx.core as mx
from mlx.utils import tree_flatten

from lmwire_protocol import Transcribe
from lmwire_protocol.events import Word

from .recording import Recording
from .transcriber import Segment, Window, request_error

WINDOW_S: Final = 30


class Parakeet:
    """A Parakeet model; see `Transcriber`.

    Args:
        module: mlx-audio's model.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.sample_rate: int = module.preprocessor_config.sample_rate
        leaves: Any = tree_flatten(module.parameters())
        self._dtype: mx.Dtype = leaves[0][1].dtype

    def check(self, request: Transcribe) -> None:
        """Check that the request has no field that Parakeet does not use. Raises RequestError."""
        for field in ("language", "prompt", "temperature"):
            if getattr(request, field):
                raise request_error(field, "this model does not use it; leave it out")

    def transcribe(self, recording: Recording, request: Transcribe) -> Iterator[Window]:
        """Transcribe a recording; see `Transcriber.transcribe`.

        Args:
            recording: The recording.
            request: The request.
        """
        yield Window(0.0)
        start, window = 0, WINDOW_S * self.sample_rate
        while start < recording.length:
            stop = min(start + window, recording.length)
            sentences = self._sentences(recording, start, stop)
            if stop < recording.length and len(sentences) > 1:
                sentences.pop()  # the next window may continue it
                stop = min(max(start + 1, start + int(sentences[-1].end * self.sample_rate)), stop)
            offset = start / self.sample_rate
            segments = [_segment(sentence, offset, words=request.words) for sentence in sentences]
            start = stop
            yield Window(stop / self.sample_rate, segments)

    def _sentences(self, recording: Recording, start: int, stop: int) -> list[Any]:
        samples = mx.array(recording.samples(start, stop))
        silence = max(self.sample_rate - len(samples), 0)  # less than a second may have no frame
        result = self.module.decode_chunk(mx.pad(samples, (0, silence)).astype(self._dtype))
        return [sentence for sentence in result.sentences if sentence.text.strip()]


def _segment(sentence: Any, offset: float, *, words: bool) -> Segment:
    start, end = round(offset + sentence.start, 2), round(offset + sentence.end, 2)
    return Segment(start, max(start, end), sentence.text, _words(sentence.tokens, offset) if words else None)


def _words(tokens: Sequence[Any], offset: float) -> list[Word]:
    """Join tokens to words: a space begins a word."""
    words: list[Word] = []
    for token in tokens:
        start, end = round(offset + token.start, 2), round(offset + token.end, 2)
        if not words or token.text.startswith(" "):
            words.append(Word(token.text, start, max(start, end)))
        else:
            words[-1].text += token.text
            words[-1].end_s = max(words[-1].end_s, end)
    return words
