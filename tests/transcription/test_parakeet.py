"""Transcripts of a tiny Parakeet, equal to mlx-audio's own of a window."""

import base64
import threading
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_audio.stt.utils import load_model

from lmwire_protocol import Load, Media, RequestError, Transcribe
from lmwire_worker.engine.interface import TranscriptionProgress, TranscriptSegment
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.transcription.runner import TranscriptionRunner
from support.models.random_speech import recording, write_parakeet
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parakeet(tmp_path_factory.mktemp("models") / "parakeet")


@pytest.fixture(scope="module")
def runner(folder: Path) -> TranscriptionRunner:
    engine = MlxModelLoader()
    engine.prepare()
    runner = engine.open(Load(path=str(folder)), lambda *progress: None, lambda: None)
    assert isinstance(runner, TranscriptionRunner)
    return runner


def outcomes(runner: TranscriptionRunner, content: bytes, **fields: Any) -> list[Any]:
    request = Transcribe(audio=Media(data=base64.b64encode(content).decode()), **fields)
    there = threading.Event()
    gathered = runner.prepare(request, there.set)
    assert gathered is not None and there.wait(SECONDS)
    runner.add(1, request, 0, prepared=gathered)
    found: list[Any] = []
    while runner.requests:
        found += runner.step()
    return found


def test_the_segments_of_a_window_are_those_of_mlx_audio(folder: Path, runner: TranscriptionRunner) -> None:
    model: Any = load_model(folder, model_type="parakeet", model_name_parts=[])
    content = recording(5)
    samples = np.frombuffer(content[44:], "<i2").astype(np.float32) / 32768
    expected = model.generate(mx.array(samples), dtype=mx.float32)
    segments = [outcome for outcome in outcomes(runner, content) if isinstance(outcome, TranscriptSegment)]
    assert "".join(part.text for part in segments).strip() == expected.text != ""


def test_a_long_recording_comes_in_windows_and_its_words_have_times(runner: TranscriptionRunner) -> None:
    found = outcomes(runner, recording(70), words=True)
    done = [outcome.done_s for outcome in found if isinstance(outcome, TranscriptionProgress)]
    segments = [outcome for outcome in found if isinstance(outcome, TranscriptSegment)]
    assert len(done) >= 4 and done == sorted(done) and done[-1] == 70
    starts = [part.start_s for part in segments]
    assert starts == sorted(starts)
    assert all("".join(word.text for word in part.words or ()) == part.text for part in segments)


def test_a_moment_is_long_enough(runner: TranscriptionRunner) -> None:
    assert outcomes(runner, recording(0.01))[-1].is_complete


def test_parakeet_reports_its_capabilities_and_refuses_a_language(runner: TranscriptionRunner) -> None:
    assert (runner.model.model_type, runner.model.vocab_size, runner.model.layers) == ("parakeet", 8, 1)
    with pytest.raises(RequestError) as refused:
        outcomes(runner, recording(1), language="en")
    assert (refused.value.code, refused.value.field) == ("unsupported", "language")
