"""The runner of models that speak, with a model that yields given samples."""

from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from lmwire_protocol import RequestError, Speak, Tokenize
from lmwire_worker.engine.interface import Failed, ModelInfo, RunnerEvent, SpeechOutput
from lmwire_worker.synthesis.runner import SynthesisRunner, encode_samples
from lmwire_worker.synthesis.synthesizer import SpeechPart

RATE = 1000
MODEL = ModelInfo("/m", "x", 0, 0, 0, 0, 0, ["speak"])


class GivenParts:
    """A `Synthesizer` that yields given parts, and raises a given error after them."""

    module: Any = None
    sample_rate = RATE

    def __init__(self, *parts: SpeechPart, error: Exception | None = None) -> None:
        self._parts, self._error = parts, error

    def check(self, request: Speak) -> None:
        if request.voice:
            raise RequestError("unsupported", "voice: none", field="voice")

    def speak(self, request: Speak) -> Iterator[SpeechPart]:
        yield from self._parts
        if self._error:
            raise self._error


class RandomParts(GivenParts):
    """A `Synthesizer` that yields random samples, as models do."""

    def speak(self, request: Speak) -> Iterator[SpeechPart]:
        for _ in range(2):
            yield SpeechPart(np.array(mx.random.uniform(-1, 1, [4])))


def part(samples: int, *, is_cut: bool = False) -> SpeechPart:
    return SpeechPart(np.full(samples, 0.5, np.float32), is_cut)


def spoken(synthesizer: GivenParts, seed: int = 0, **fields: Any) -> list[RunnerEvent]:
    """Return all events of one request."""
    runner = SynthesisRunner(synthesizer, MODEL)
    runner.add(1, Speak(text="Hello", **fields), seed)
    events: list[RunnerEvent] = []
    while not events or not (isinstance(events[-1], Failed) or _finish_reason(events[-1])):
        events += runner.step()
    return events


def _finish_reason(event: RunnerEvent) -> str | None:
    assert isinstance(event, SpeechOutput)
    return event.finish_reason


def samples_of(events: Sequence[RunnerEvent]) -> bytes:
    return b"".join(event.samples for event in events if isinstance(event, SpeechOutput))


def test_samples_become_16_bit_integers_within_full_scale() -> None:
    samples = np.array([0.0, 1.0, -1.0, 2.0, -2.0, np.nan, np.inf, -np.inf], np.float32)
    assert encode_samples(samples) == np.array([0, 32767, -32767, 32767, -32767, 0, 32767, -32767], "<i2").tobytes()


def test_a_speech_is_the_samples_of_all_parts_and_ends_with_stop() -> None:
    events = spoken(GivenParts(part(3), part(0), part(2)))
    assert samples_of(events) == encode_samples(np.full(5, 0.5, np.float32))
    assert _finish_reason(events[-1]) == "stop"


def test_a_long_part_comes_in_events_that_fit_a_line() -> None:
    events = spoken(GivenParts(part(40_000)), max_seconds=60)
    assert [len(event.samples) for event in events if isinstance(event, SpeechOutput)] == [32768, 32768, 14464, 0]


def test_a_speech_ends_with_length_at_max_seconds() -> None:
    events = spoken(GivenParts(part(600), part(600), part(600)), max_seconds=1)
    assert len(samples_of(events)) == 2 * RATE
    assert _finish_reason(events[-1]) == "length"


def test_a_speech_of_exactly_max_seconds_ends_with_stop() -> None:
    assert _finish_reason(spoken(GivenParts(part(RATE)), max_seconds=1)[-1]) == "stop"


def test_a_part_that_the_model_has_cut_makes_the_end_length() -> None:
    assert _finish_reason(spoken(GivenParts(part(3, is_cut=True), part(2)))[-1]) == "length"


def test_the_seed_determines_the_speech() -> None:
    assert samples_of(spoken(RandomParts(), 7)) == samples_of(spoken(RandomParts(), 7))
    assert samples_of(spoken(RandomParts(), 7)) != samples_of(spoken(RandomParts(), 8))


def test_an_error_of_the_library_ends_its_request_alone() -> None:
    runner = SynthesisRunner(GivenParts(part(1), error=ValueError("broken")), MODEL)
    for key in (1, 2):
        runner.add(key, Speak(text="Hello"), 0)
    runner.step()
    (failure,) = runner.step()
    assert isinstance(failure, Failed) and (failure.key, failure.error.code) == (1, "engine_error")
    assert [event.key for event in runner.step()] == [2]


def test_a_removed_request_has_no_further_parts() -> None:
    runner = SynthesisRunner(GivenParts(part(1), part(1)), MODEL)
    for key in (1, 2):
        runner.add(key, Speak(text="Hello"), 0)
    assert [event.key for event in runner.step()] == [1]
    assert runner.remove(1) == []
    assert [event.key for event in runner.step()] == [2]


def test_a_request_that_the_model_refuses_is_not_queued() -> None:
    runner = SynthesisRunner(GivenParts(), MODEL)
    with pytest.raises(RequestError):
        runner.add(1, Speak(text="Hello", voice="ada"), 0)
    runner.add(2, Speak(text="Hello"), 0)
    assert [event.key for event in runner.step()] == [2]


def test_tokens_cannot_be_counted() -> None:
    with pytest.raises(RequestError, match="can only speak"):
        SynthesisRunner(GivenParts(), MODEL).tokenize(Tokenize(prompt="a"))
