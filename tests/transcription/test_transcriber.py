"""Segments that are too long for an event, and Parakeet's windows, on a network with scripted output."""

from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import Media, RequestError, Transcribe
from lmwire_protocol.events import Word
from lmwire_worker.media import Sound
from lmwire_worker.transcription.detect import is_speech_model
from lmwire_worker.transcription.parakeet import Parakeet
from lmwire_worker.transcription.recording import Recording
from lmwire_worker.transcription.transcriber import MAX_CHARACTERS, MAX_WORDS, Segment, split_segment

RATE = 16_000


def test_a_segment_that_fits_stays_whole() -> None:
    segment = Segment(0.0, 1.0, "x" * MAX_CHARACTERS, [Word("x", 0.0, 1.0)] * MAX_WORDS)
    assert list(split_segment(segment)) == [segment]


@pytest.mark.parametrize("words", [True, False])
def test_a_segment_that_is_too_long_is_cut_and_nothing_of_it_is_lost(words: bool) -> None:
    said = [Word(f" w{at}" + "x" * 20, at / 10, (at + 1) / 10) for at in range(901)]
    text = "".join(word.text for word in said)
    parts = list(split_segment(Segment(0.0, 90.1, text, said if words else None)))
    assert "".join(part.text for part in parts) == text
    assert all(len(part.text) <= MAX_CHARACTERS and len(part.words or ()) <= MAX_WORDS for part in parts)
    assert [word for part in parts for word in part.words or ()] == (said if words else [])
    times = [time for part in parts for time in (part.start_s, part.end_s)]
    assert times == sorted(times) and (times[0], times[-1]) == pytest.approx((0, 90.1))


def test_one_endless_word_is_cut_as_text() -> None:
    parts = list(split_segment(Segment(0.0, 8.0, "x" * 9000, [Word("x" * 9000, 0.0, 8.0)])))
    assert "".join(part.text for part in parts) == "x" * 9000


class SaysSeconds:
    """A network that returns a word for each second of sound, and ends a sentence every seven."""

    preprocessor_config = SimpleNamespace(sample_rate=RATE)

    def __init__(self) -> None:
        self.transcribed: list[tuple[int, int]] = []

    def parameters(self) -> dict[str, mx.array]:
        return {"weight": mx.ones(1)}

    def decode_chunk(self, samples: Any) -> Any:
        numbers = np.round(np.array(samples)[RATE // 2 :: RATE] * 1000).astype(int).tolist()
        self.transcribed.append((len(samples), numbers[0]))
        tokens = [
            SimpleNamespace(text=f" {number}", start=float(at), end=at + 0.9) for at, number in enumerate(numbers)
        ]
        sentences: list[list[Any]] = [[]]
        for number, token in zip(numbers, tokens, strict=True):
            sentences[-1].append(token)
            if number % 7 == 6:
                sentences.append([])
        return SimpleNamespace(sentences=[_sentence(part) for part in sentences if part])


def _sentence(tokens: list[Any]) -> Any:
    text = "".join(token.text for token in tokens)
    return SimpleNamespace(text=text, tokens=tokens, start=tokens[0].start, end=tokens[-1].end)


def spoken(seconds: int) -> Recording:
    """Each second's samples are its number, in thousandths."""
    samples = np.asarray(np.repeat(np.arange(seconds) / 1000, RATE), np.float32)
    return Recording(Sound(samples, RATE, b""), RATE)


def asking(**fields: Any) -> Transcribe:
    return Transcribe(audio=Media(data=""), **fields)


def test_every_second_is_transcribed_once_whatever_the_windows() -> None:
    network = SaysSeconds()
    windows = list(Parakeet(network).transcribe(spoken(100), asking()))
    text = "".join(segment.text for window in windows for segment in window.segments)
    assert text.split() == [str(second) for second in range(100)]
    assert all(samples <= 30 * RATE for samples, _ in network.transcribed)
    assert [window.done_s for window in windows] == sorted(window.done_s for window in windows)
    assert windows[-1].done_s == 100


def test_a_sentence_has_times_and_its_words_have() -> None:
    windows = list(Parakeet(SaysSeconds()).transcribe(spoken(40), asking(words=True)))
    for segment in (segment for window in windows for segment in window.segments):
        assert segment.words is not None and "".join(word.text for word in segment.words) == segment.text
        for word in segment.words:
            assert word.start_s == pytest.approx(int(word.text), abs=1)
        assert (segment.start_s, segment.end_s) == (segment.words[0].start_s, segment.words[-1].end_s)


@pytest.mark.parametrize("fields", [{"language": "en"}, {"prompt": "Ada"}, {"temperature": 0.5}])
def test_options_that_parakeet_lacks_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as refused:
        Parakeet(SaysSeconds()).check(asking(**fields))
    assert (refused.value.code, refused.value.field) == ("unsupported", *fields)


def test_a_speech_model_is_known_by_its_config() -> None:
    assert is_speech_model({"model_type": "whisper"})
    assert is_speech_model({"n_mels": 80, "n_audio_ctx": 1500, "n_text_ctx": 448})
    assert is_speech_model({"target": "nemo.collections.asr.models.rnnt_bpe_models.EncDecRNNTBPEModel"})
    assert not is_speech_model({"model_type": "qwen3"})
