"""Whisper, in windows of half a minute. Each begins where the last complete segment ends.

The algorithm is that of https://github.com/openai/whisper (`transcribe.py`). mlx-audio's own loop transcribes a whole
recording in one call, which nothing could cancel.
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
from .transcriber import Segment, Window, request_error

PROMPT_CHARACTERS: Final = 2**14
"""Characters of a request's prompt, from its end, that are tokenized. The model reads some 200 tokens of them."""
TEMPERATURES: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Temperatures at which a doubtful window is tried again, in turn."""
MAX_COMPRESSION_RATIO: Final = 2.4
"""Highest compression ratio of a text that is not doubtful: repetitions compress well."""
MIN_AVERAGE_LOGPROB: Final = -1.0
"""Lowest average log-probability of a text that is not doubtful."""
NO_SPEECH_PROBABILITY: Final = 0.6
"""Probability of silence above which an improbable text is dropped."""
MAX_CONTEXT_TEMPERATURE: Final = 0.5
"""Highest temperature of a window whose text is the context of the next one."""
MARGIN_FRAMES: Final = 4
"""Frames before a window that are computed with it, since frames overlap."""


class Whisper:
    """A Whisper model; see `Transcriber`.

    Args:
        module: mlx-audio's model, with its processor.
    """

    sample_rate = SAMPLE_RATE

    def __init__(self, module: Any) -> None:
        self.module = module

    def check(self, request: Transcribe) -> None:
        """Check that the model knows the request's language. Raises RequestError."""
        if request.language is None:
            return
        code = _code(request.language)
        if code not in LANGUAGES:
            problem = (
                f"{request.language!r} is not a language that Whisper knows; give a code like `en`, or its English name"
            )
            raise request_error("language", problem, "invalid_request")
        if not self.module.is_multilingual and code != "en":
            raise request_error("language", "this model knows English alone")

    def transcribe(self, recording: Recording, request: Transcribe) -> Iterator[Window]:
        """Transcribe a recording; see `Transcriber.transcribe`.

        Args:
            recording: The recording.
            request: The request.
        """
        language = _code(request.language) if request.language else self._detect(recording)
        yield Window(0.0, language=language)
        yield from _Transcription(self.module, recording, request, language).windows()

    def _detect(self, recording: Recording) -> str:
        if not self.module.is_multilingual:
            return "en"
        _, probabilities = self.module.detect_language(_mel(self.module, recording, 0, N_FRAMES))
        return max(probabilities, key=probabilities.get)


class _Transcription:
    """The transcription of one recording. Times are in frames of 10 ms, or in seconds if the name ends in `_s`."""

    def __init__(self, module: Any, recording: Recording, request: Transcribe, language: str) -> None:
        self._module = module
        self._recording = recording
        self._request = request
        self._language = language
        self._tokenizer = module.get_tokenizer(language=language)
        self._frames_per_token = N_FRAMES // module.dims.n_audio_ctx
        prompt = request.prompt.strip()[-PROMPT_CHARACTERS:]
        self._context_tokens: list[int] = self._tokenizer.encode(" " + prompt) if prompt else []
        """Tokens before the next window: the prompt, and the text so far."""
        self._last_word_s = 0.0
        self._reported_s = 0.0

    def windows(self) -> Iterator[Window]:
        """Yield the windows of the recording."""
        length = max(self._recording.length // HOP_LENGTH, 1)
        seek = 0
        while seek < length:
            size = min(N_FRAMES, length - seek)
            mel = _mel(self._module, self._recording, seek, size)
            result = self._attempt(mel, seek, self._request.temperature)
            for temperature in TEMPERATURES:
                if temperature > self._request.temperature and is_doubtful(result):
                    yield Window(seek / FRAMES_PER_SECOND, language=self._language)  # each attempt is a step
                    result = self._attempt(mel, seek, temperature)
            segments, seek = self._read(result, mel, seek, size)
            yield Window(min(seek, length) / FRAMES_PER_SECOND, segments, self._language)

    def _attempt(self, mel: mx.array, seek: int, temperature: float) -> DecodingResult:
        mx.random.seed(seek)  # the same recording, the same transcript
        options = DecodingOptions(language=self._language, temperature=temperature, prompt=list(self._context_tokens))
        return self._module.decode(mel, options)

    def _read(self, result: DecodingResult, mel: mx.array, seek: int, size: int) -> tuple[list[Segment], int]:
        """Return a window's segments, and the start of the next window."""
        if result.no_speech_prob > NO_SPEECH_PROBABILITY and result.avg_logprob <= MIN_AVERAGE_LOGPROB:
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
        self._context_tokens = [] if result.temperature > MAX_CONTEXT_TEMPERATURE else self._context_tokens + tokens
        # The next window must begin later than this one.
        last_s = (seek + size) / FRAMES_PER_SECOND
        return [self._segment(segment, last_s) for segment in found], end if seek < end <= seek + size else seek + size

    def _split(self, result: DecodingResult, seek: int, size: int) -> tuple[list[dict[str, Any]], int]:
        """Return a window's segments in mlx-audio's form, and the end of the last complete one.

        Two timestamps in a row end one segment and begin the next. Text after the last such pair belongs to the next
        window. A single timestamp at the end means that silence follows.
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
        """Return a segment that begins no earlier than the last one ended, and ends within the window."""
        words = [Word(word["word"], round(word["start"], 2), round(word["end"], 2)) for word in found["words"]]
        start = max(min(round(float(found["start"]), 2), last_s), self._reported_s)
        self._reported_s = max(min(round(float(found["end"]), 2), last_s), start)
        return Segment(start, self._reported_s, found["text"], words if self._request.words else None)


def _mel(module: Any, recording: Recording, seek: int, size: int) -> mx.array:
    """Return the spectrogram of a window: [N_FRAMES, n_mels], with zeros after the end."""
    margin = min(MARGIN_FRAMES, seek)
    samples = recording.samples((seek - margin) * HOP_LENGTH, (seek + size) * HOP_LENGTH + N_FFT)
    mel = log_mel_spectrogram(np.ascontiguousarray(samples), n_mels=module.dims.n_mels, padding=N_FFT)
    return pad_or_trim(mel[margin : margin + size], N_FRAMES, axis=-2).astype(module.dtype)


def is_doubtful(result: DecodingResult) -> bool:
    """Return whether a window should be decoded again, at a higher temperature."""
    silent = result.no_speech_prob > NO_SPEECH_PROBABILITY and result.avg_logprob < MIN_AVERAGE_LOGPROB
    return not silent and (result.compression_ratio > MAX_COMPRESSION_RATIO or result.avg_logprob < MIN_AVERAGE_LOGPROB)


def _code(language: str) -> str:
    name = language.strip().lower()
    return TO_LANGUAGE_CODE.get(name, name)
