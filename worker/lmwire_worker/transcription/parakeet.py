"""Parakeet: half a minute at a time, each window from where the last one's whole sentences end."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import mlx.core as mx
from mlx.utils import tree_flatten

from lmwire_protocol import Transcribe
from lmwire_protocol.events import Word

from .recording import Recording
from .transcriber import Segment, Window, refuse

WINDOW_S: Final = 30


class Parakeet:
    """See `Listener`.

    Args:
        module: mlx-audio's model.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.rate: int = module.preprocessor_config.sample_rate
        leaves: Any = tree_flatten(module.parameters())
        self._dtype: mx.Dtype = leaves[0][1].dtype

    def check(self, request: Transcribe) -> None:
        for field in ("language", "prompt", "temperature"):
            if getattr(request, field):
                raise refuse(field, "this model has no use for it; leave it out")

    def listen(self, recording: Recording, request: Transcribe) -> Iterator[Window]:
        yield Window(0.0)
        start, window = 0, WINDOW_S * self.rate
        while start < recording.length:
            stop = min(start + window, recording.length)
            sentences = self._sentences(recording, start, stop)
            if stop < recording.length and len(sentences) > 1:
                sentences.pop()  # it may go on in the next window
                stop = min(max(start + 1, start + int(sentences[-1].end * self.rate)), stop)
            offset = start / self.rate
            segments = [_segment(sentence, offset, words=request.words) for sentence in sentences]
            start = stop
            yield Window(stop / self.rate, segments)

    def _sentences(self, recording: Recording, start: int, stop: int) -> list[Any]:
        samples = mx.array(recording.piece(start, stop))
        silence = max(self.rate - len(samples), 0)  # what is shorter than a second may have no frame
        result = self.module.decode_chunk(mx.pad(samples, (0, silence)).astype(self._dtype))
        return [sentence for sentence in result.sentences if sentence.text.strip()]


def _segment(sentence: Any, offset: float, *, words: bool) -> Segment:
    start, end = round(offset + sentence.start, 2), round(offset + sentence.end, 2)
    return Segment(start, max(start, end), sentence.text, _words(sentence.tokens, offset) if words else None)


def _words(tokens: Sequence[Any], offset: float) -> list[Word]:
    """Tokens put together: a space begins a word."""
    words: list[Word] = []
    for token in tokens:
        start, end = round(offset + token.start, 2), round(offset + token.end, 2)
        if not words or token.text.startswith(" "):
            words.append(Word(token.text, start, max(start, end)))
        else:
            words[-1].text += token.text
            words[-1].end_s = max(words[-1].end_s, end)
    return words
