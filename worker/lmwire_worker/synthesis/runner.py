"""Run a model that speaks: one text at a time, a few seconds of speech in each step."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import mlx.core as mx
import numpy as np

from lmwire_protocol import RequestError, Speak, Tokenize
from lmwire_protocol.limits import AUDIO_BYTES

from ..engine.interface import (
    AdmittedRequest,
    InferenceCommand,
    ModelInfo,
    Preparation,
    RunnerEvent,
    SpeechOutput,
)
from ..models.uncached_runner import UncachedRunner
from .synthesizer import SpeechPart, Synthesizer

MAX_BATCH_SIZE: Final = 1
"""Texts that are spoken together: the models keep the state of a speech in the network."""
_FULL_SCALE: Final = 32767


@dataclass
class _SpeakState:
    """A request in work, and the rest of its parts."""

    key: int
    seed: int
    remaining: int
    """Samples that it may still have."""
    parts: Iterator[SpeechPart]
    is_started: bool = False
    is_cut: bool = False


class SynthesisRunner(UncachedRunner[_SpeakState]):
    """See `lmwire_worker.engine.interface.ModelRunner`.

    Args:
        synthesizer: The model, with its weights in memory.
        model: Its description.
    """

    max_batch_size = MAX_BATCH_SIZE

    def __init__(self, synthesizer: Synthesizer, model: ModelInfo) -> None:
        super().__init__()
        self.model = model
        self._synthesizer: Synthesizer | None = synthesizer
        self._sample_rate = synthesizer.sample_rate

    def prepare(
        self, request: InferenceCommand | Tokenize, ready: Callable[[], None], size: int = 0
    ) -> Preparation | None:
        """Return None: no request needs a preparation."""
        return None

    def add(
        self,
        key: int,
        request: InferenceCommand,
        seed: int,
        *,
        plain_text: bool = False,
        prepared: Preparation | None = None,
    ) -> AdmittedRequest:
        """Queue a `speak`; see `ModelRunner`."""
        assert isinstance(request, Speak) and self._synthesizer is not None
        self._synthesizer.check(request)
        remaining = request.max_seconds * self._sample_rate
        self.requests.append(_SpeakState(key, seed, remaining, self._synthesizer.speak(request)))
        return AdmittedRequest(prompt_tokens=0)

    def step(self) -> list[RunnerEvent]:
        """Compute the next part of the first request's speech; see `ModelRunner`."""
        state = self.requests[0]
        try:
            if not state.is_started:
                mx.random.seed(state.seed)
                state.is_started = True
            part = next(state.parts, None)
        except BaseException as error:
            return self._fail(state.key, error)
        if part is None:
            return self._end(state, is_cut=state.is_cut)
        state.is_cut |= part.is_cut
        samples = part.samples[: state.remaining]
        state.remaining -= len(samples)
        events = self._events(state.key, samples)
        return [*events, *self._end(state, is_cut=True)] if len(samples) < len(part.samples) else events

    def tokenize(self, request: Tokenize, prepared: Preparation | None = None) -> tuple[list[int], str]:
        """Raise unsupported: a text's tokens are of no use to a host."""
        raise RequestError("unsupported", f"{self.model.path} does not count tokens; it can only speak")

    def _end(self, state: _SpeakState, *, is_cut: bool) -> list[RunnerEvent]:
        self.requests.remove(state)
        return [SpeechOutput(state.key, b"", self._sample_rate, "length" if is_cut else "stop")]

    def _events(self, key: int, samples: np.ndarray) -> list[RunnerEvent]:
        encoded = encode_samples(samples)
        parts: Sequence[bytes] = [encoded[at : at + AUDIO_BYTES] for at in range(0, len(encoded), AUDIO_BYTES)]
        return [SpeechOutput(key, part, self._sample_rate) for part in parts]

    def _release(self) -> None:
        self._synthesizer = None


def encode_samples(samples: np.ndarray) -> bytes:
    """Return samples as little-endian 16-bit integers. Values beyond full scale are cut, and NaN is silence.

    Args:
        samples: Float32, one channel.
    """
    finite = np.nan_to_num(samples.astype(np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
    return (np.clip(finite, -1.0, 1.0) * _FULL_SCALE).round().astype("<i2").tobytes()
