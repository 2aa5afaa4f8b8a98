"""Whisper: half a minute at a time, each window from where the last one's whole segments end.

mlx-audio's own loop does the same for a whole recording in one call, which nothing could cancel.
"""

from collections.abc import Iterator
from typing import Any, Final

import mlx.core as mx
import numpy as np
from mlx_audio.stt.models.whisper.audio import (
    FRAMES_PER_SECOND,
    HOP_LENGTH,
    N_FFT,
    N_FRAMES,
    SAMPLE_RATE,
    log_mel_spectrogram,
    pad_or_trim,
)
from mlx_audio.stt.models.whisper.decoding import DecodingOptions, DecodingResult
from mlx_audio.stt.models.whisper.timing import add_word_timestamps
from mlx_audio.stt.models.whisper.tokenizer import LANGUAGES, TO_LANGUAGE_CODE

from lmwire_protocol import Transcribe
from lmwire_protocol.events import Word

from .recording import Recording
from .transcriber import Segment, Window, refuse

TEMPERATURES: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
"""At which a window is tried again,"""
REPETITIVE: Final = 2.4
"""when its text can be compressed so well,"""
IMPROBABLE: Final = -1.0
"""or its tokens have so low a log-probability on average."""
SILENT: Final = 0.6
"""The probability of no speech from which on an improbable text is none."""
CARRIED: Final = 0.5
"""The highest temperature from which a window's text leads into the next."""
MARGIN: Final = 4
"""Frames before a window whose samples its first frames overlap with."""


class Whisper:
    """See `Listener`.

    Args:
        module: mlx-audio's model, with its processor.
    """

    rate = SAMPLE_RATE

    def __init__(self, module: Any) -> None:
        self.module = module

    def check(self, request: Transcribe) -> None:
        if request.language is None:
            return
        code = _code(request.language)
        if code not in LANGUAGES:
            problem = (
                f"{request.language!r} is no language that Whisper knows; give a code as `en`, or its English name"
            )
            raise refuse("language", problem, "invalid_request")
        if not self.module.is_multilingual and code != "en":
            raise refuse("language", "this model knows English alone")

    def listen(self, recording: Recording, request: Transcribe) -> Iterator[Window]:
        language = _code(request.language) if request.language else self._detect(recording)
        yield Window(0.0, language=language)
        yield from _Listening(self.module, recording, request, language).windows()

    def _detect(self, recording: Recording) -> str:
        if not self.module.is_multilingual:
            return "en"
        _, probabilities = self.module.detect_language(_mel(self.module, recording, 0, N_FRAMES))
        return max(probabilities, key=probabilities.get)


class _Listening:
    """One recording at work. Times are frames of 10 ms, unless a name says seconds."""

    def __init__(self, module: Any, recording: Recording, request: Transcribe, language: str) -> None:
        self._module = module
        self._recording = recording
        self._request = request
        self._language = language
        self._tokenizer = module.get_tokenizer(language=language)
        self._frames_per_token = N_FRAMES // module.dims.n_audio_ctx
        self._said: list[int] = self._tokenizer.encode(" " + request.prompt.strip()) if request.prompt.strip() else []
        """The tokens that lead into the next window."""
        self._last_word_s = 0.0
        self._told_s = 0.0

    def windows(self) -> Iterator[Window]:
        length = max(self._recording.length // HOP_LENGTH, 1)
        seek = 0
        while seek < length:
            size = min(N_FRAMES, length - seek)
            mel = _mel(self._module, self._recording, seek, size)
            result = self._attempt(mel, seek, self._request.temperature)
            for temperature in TEMPERATURES:
                if temperature > self._request.temperature and _is_doubtful(result):
                    yield Window(seek / FRAMES_PER_SECOND, language=self._language)  # each attempt is a step
                    result = self._attempt(mel, seek, temperature)
            segments, seek = self._read(result, mel, seek, size)
            yield Window(min(seek, length) / FRAMES_PER_SECOND, segments, self._language)

    def _attempt(self, mel: mx.array, seek: int, temperature: float) -> DecodingResult:
        mx.random.seed(seek)  # the same recording, the same transcript
        options = DecodingOptions(language=self._language, temperature=temperature, prompt=list(self._said))
        return self._module.decode(mel, options)

    def _read(self, result: DecodingResult, mel: mx.array, seek: int, size: int) -> tuple[list[Segment], int]:
        """A window's segments, and where the next one begins."""
        if result.no_speech_prob > SILENT and result.avg_logprob <= IMPROBABLE:
            return [], seek + size
        split, end = self._split(result, seek, size)
        found = [segment for segment in split if segment["text"].strip() and segment["end"] != segment["start"]]
        if self._request.words and found:
            add_word_timestamps(
                segments=found,
                model=self._module,
                tokenizer=self._tokenizer,
                mel=mel,
                num_frames=size,
                last_speech_timestamp=self._last_word_s,
            )
            ends = [word["end"] for segment in found for word in segment["words"]]
            self._last_word_s = ends[-1] if ends else found[-1]["end"]
            if end < seek + size:
                end = round(self._last_word_s * FRAMES_PER_SECOND)
        tokens = [token for segment in found for token in segment["tokens"]]
        self._said = [] if result.temperature > CARRIED else self._said + tokens
        # A window that leads nowhere would come again and again.
        last_s = (seek + size) / FRAMES_PER_SECOND
        return [self._segment(segment, last_s) for segment in found], end if seek < end <= seek + size else seek + size

    def _split(self, result: DecodingResult, seek: int, size: int) -> tuple[list[dict[str, Any]], int]:
        """The window's segments in mlx-audio's form, and where the last whole one ends.

        Two timestamps in a row are the end of one segment and the beginning of the next; text behind the last such
        pair is left to the next window. A single one at the end says that there is silence behind it.
        """
        tokens, first = result.tokens, self._tokenizer.timestamp_begin
        is_time = [token >= first for token in tokens]
        closed = is_time[-2:] == [False, True]
        cuts = [at for at in range(1, len(tokens)) if is_time[at - 1] and is_time[at]]
        if not cuts:
            times = [token for token in tokens if token > first]
            end = seek + (times[-1] - first) * self._frames_per_token if times else seek + size
            return [self._found(tokens, seek, seek, end)], seek + size
        found: list[dict[str, Any]] = []
        for start, stop in zip([0, *cuts], cuts + [len(tokens)] * closed, strict=False):
            piece = tokens[start:stop]
            begin, end = (seek + (token - first) * self._frames_per_token for token in (piece[0], piece[-1]))
            found.append(self._found(piece, seek, begin, end))
        return found, seek + size if closed else seek + (tokens[cuts[-1] - 1] - first) * self._frames_per_token

    def _found(self, tokens: list[int], seek: int, begin: int, end: int) -> dict[str, Any]:
        text = self._tokenizer.decode([token for token in tokens if token < self._tokenizer.eot])
        times = {"start": begin / FRAMES_PER_SECOND, "end": end / FRAMES_PER_SECOND}
        return {"seek": seek, **times, "text": text, "tokens": tokens, "words": []}

    def _segment(self, found: dict[str, Any], last_s: float) -> Segment:
        """A segment that begins where the last one ended at the earliest, and is within the window at the latest."""
        words = [Word(word["word"], round(word["start"], 2), round(word["end"], 2)) for word in found["words"]]
        start = max(min(round(float(found["start"]), 2), last_s), self._told_s)
        self._told_s = max(min(round(float(found["end"]), 2), last_s), start)
        return Segment(start, self._told_s, found["text"], words if self._request.words else None)


def _mel(module: Any, recording: Recording, seek: int, size: int) -> mx.array:
    """What Whisper hears of a window: [N_FRAMES, n_mels], with zeros behind the end."""
    margin = min(MARGIN, seek)
    samples = recording.piece((seek - margin) * HOP_LENGTH, (seek + size) * HOP_LENGTH + N_FFT)
    mel = log_mel_spectrogram(np.ascontiguousarray(samples), n_mels=module.dims.n_mels, padding=N_FFT)
    return pad_or_trim(mel[margin : margin + size], N_FRAMES, axis=-2).astype(module.dtype)


def _is_doubtful(result: DecodingResult) -> bool:
    silent = result.no_speech_prob > SILENT and result.avg_logprob < IMPROBABLE
    return not silent and (result.compression_ratio > REPETITIVE or result.avg_logprob < IMPROBABLE)


def _code(language: str) -> str:
    name = language.strip().lower()
    return TO_LANGUAGE_CODE.get(name, name)
