"""Transcripts of a tiny Whisper, equal to mlx-audio's own of a window, one window a step."""

import base64
import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lmwire_protocol import Load, Media, RequestError, Transcribe
from lmwire_worker.engine.interface import Failed, LoadCancelled, TranscriptionProgress, TranscriptSegment
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.media import Sound
from lmwire_worker.media.resampling import resample
from lmwire_worker.transcription import whisper
from lmwire_worker.transcription.recording import Recording
from lmwire_worker.transcription.runner import TranscriptionRunner
from support.models.random_speech import recording, write_whisper
from support.nightly import nightly_but
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights are never sure of anything, and every window would be tried six times."""
    monkeypatch.setattr(whisper, "TEMPERATURES", ())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_whisper(tmp_path_factory.mktemp("models") / "whisper")


@pytest.fixture(scope="module")
def runner(folder: Path) -> TranscriptionRunner:
    return open_runner(folder)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> TranscriptionRunner:
    return open_runner(write_whisper(tmp_path_factory.mktemp("models") / "multilingual", multilingual=True))


def open_runner(folder: Path, **fields: Any) -> TranscriptionRunner:
    engine = MlxModelLoader()
    engine.prepare()
    runner = engine.open(Load(path=str(folder), **fields), lambda *progress: None, lambda: None)
    assert isinstance(runner, TranscriptionRunner)
    return runner


def test_a_load_imports_neither_all_families_nor_what_resamples(folder: Path) -> None:
    code = (
        "import sys; from lmwire_protocol import Load; from lmwire_worker.loading.model_loader import MlxModelLoader;"
        "loader = MlxModelLoader(); loader.prepare(); loader.open(Load(path=sys.argv[1]), print, print);"
        "sys.exit(' '.join({'mlx_audio.stt.models.voxtral', 'scipy'} & sys.modules.keys()) or 0)"
    )
    subprocess.run([sys.executable, "-c", code, folder], check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)


def asking(content: bytes, **fields: Any) -> Transcribe:
    return Transcribe(audio=Media(data=base64.b64encode(content).decode()), **fields)


def add(runner: TranscriptionRunner, key: int, request: Transcribe) -> None:
    there = threading.Event()
    prepared = runner.prepare(request, there.set)
    assert prepared is not None and there.wait(SECONDS)
    runner.add(key, request, 0, prepared=prepared)


def finish(runner: TranscriptionRunner) -> Iterator[list[Any]]:
    while runner.requests:
        yield runner.step()


def transcript(runner: TranscriptionRunner, request: Transcribe) -> list[TranscriptSegment]:
    add(runner, 1, request)
    return [outcome for outcomes in finish(runner) for outcome in outcomes if isinstance(outcome, TranscriptSegment)]


def timed(segments: list[TranscriptSegment]) -> list[tuple[float, float, str]]:
    return [(part.start_s, part.end_s, part.text) for part in segments]


SHORT = recording(4)
LONG = recording(45, rate=8000)


def test_the_segments_of_a_window_are_those_of_mlx_audio(folder: Path, runner: TranscriptionRunner) -> None:
    from mlx_audio.stt.utils import load_model

    model: Any = load_model(folder, model_type="whisper", model_name_parts=[])
    samples = np.frombuffer(SHORT[44:], "<i2").astype(np.float32) / 32768
    expected = model.generate(samples, temperature=0.0)
    assert "".join(part.text for part in transcript(runner, asking(SHORT))) == expected.text != ""


def test_the_same_recording_has_the_same_transcript_alone_and_beside_others(runner: TranscriptionRunner) -> None:
    other = asking(recording(3, pitch=220))
    alone = [timed(transcript(runner, request)) for request in (asking(SHORT), other)]
    add(runner, 1, asking(SHORT))
    add(runner, 2, other)
    outcomes = [outcome for step in finish(runner) for outcome in step if isinstance(outcome, TranscriptSegment)]
    assert [timed([part for part in outcomes if part.key == key]) for key in (1, 2)] == alone
    assert alone[0] != alone[1]


def test_a_long_recording_comes_window_by_window_and_in_order(runner: TranscriptionRunner) -> None:
    add(runner, 1, asking(LONG))
    steps = list(finish(runner))
    done = [outcome.done_s for step in steps for outcome in step if isinstance(outcome, TranscriptionProgress)]
    assert done == sorted(done) and done[0] == 0 and done[-1] == 45
    assert len(steps) >= 4, "the beginning, two windows at least, the end"
    assert all(isinstance(step[0], TranscriptionProgress) and step[0].duration_s == 45 for step in steps)
    times = [
        time
        for step in steps
        for part in step
        if isinstance(part, TranscriptSegment)
        for time in (part.start_s, part.end_s)
    ]
    assert times and times == sorted(times) and times[-1] <= 45


def test_a_removal_takes_effect_after_the_current_window(runner: TranscriptionRunner) -> None:
    add(runner, 1, asking(LONG))
    add(runner, 2, asking(SHORT))
    for _ in range(3):
        runner.step()
    assert runner.remove(1) == []
    assert {outcome.key for step in finish(runner) for outcome in step} == {2}


def test_words_have_times_within_the_recording(runner: TranscriptionRunner) -> None:
    segments = transcript(runner, asking(SHORT, words=True))
    words = [word for part in segments for word in part.words or ()]
    assert words
    assert all(0 <= word.start_s <= word.end_s <= 30 for word in words)
    assert all(part.words is None for part in transcript(runner, asking(SHORT)))


def test_the_transcript_depends_on_the_recording_and_on_the_prompt(runner: TranscriptionRunner) -> None:
    plain = timed(transcript(runner, asking(SHORT)))
    assert timed(transcript(runner, asking(recording(4, pitch=1500)))) != plain
    assert timed(transcript(runner, asking(SHORT, prompt="la le li lo lu ka ke ki ko ku " * 2))) != plain


def test_a_window_of_doubtful_words_is_tried_at_higher_temperatures_an_attempt_a_step(
    runner: TranscriptionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whisper, "TEMPERATURES", (0.5, 1.0))
    tried: list[float] = []

    def doubt(result: Any) -> bool:
        tried.append(result.temperature)
        return True

    monkeypatch.setattr(whisper, "is_doubtful", doubt)
    add(runner, 1, asking(SHORT, temperature=0.2))
    runner.step()
    windows = [runner.step() for _ in range(3)]
    assert tried == [0.2, 0.5]
    assert [any(isinstance(outcome, TranscriptSegment) for outcome in window) for window in windows[:2]] == [
        False,
        False,
    ]
    runner.remove(1)


def test_silence_is_accepted_and_repetition_is_tried_again() -> None:
    def result(**fields: float) -> Any:
        return SimpleNamespace(**{"no_speech_prob": 0.0, "avg_logprob": -0.2, "compression_ratio": 1.5, **fields})

    assert not whisper.is_doubtful(result())
    assert whisper.is_doubtful(result(avg_logprob=-1.2))
    assert whisper.is_doubtful(result(compression_ratio=2.5))
    assert not whisper.is_doubtful(result(avg_logprob=-1.2, no_speech_prob=0.7))


def test_a_model_of_english_says_so_and_refuses_other_languages(runner: TranscriptionRunner) -> None:
    add(runner, 1, asking(SHORT, language="English"))
    assert {outcome.language for outcome in runner.step() if isinstance(outcome, TranscriptionProgress)} == {"en"}
    runner.remove(1)
    for language, code in (("de", "unsupported"), ("klingon", "invalid_request")):
        with pytest.raises(RequestError) as refused:
            add(runner, 1, asking(SHORT, language=language))
        assert (refused.value.code, refused.value.field) == (code, "language")


def test_a_multilingual_model_detects_or_receives_the_language(multilingual: TranscriptionRunner) -> None:
    add(multilingual, 1, asking(SHORT))
    add(multilingual, 2, asking(SHORT, language="german"))
    first, second = multilingual.step(), multilingual.step()
    (detected,) = [outcome.language for outcome in first if isinstance(outcome, TranscriptionProgress)]
    (given,) = [outcome.language for outcome in second if isinstance(outcome, TranscriptionProgress)]
    assert isinstance(detected, str) and given == "de"
    multilingual.remove(1)
    multilingual.remove(2)


def test_a_recording_that_cannot_be_read_is_refused_with_its_place(runner: TranscriptionRunner) -> None:
    with pytest.raises(RequestError) as refused:
        add(runner, 1, asking(b"no recording"))
    assert (refused.value.code, refused.value.field) == ("invalid_request", "audio.data")


def test_an_exception_ends_its_recording_alone(runner: TranscriptionRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Iterator[Any]:
        raise RuntimeError("broken")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(runner.transcriber, "transcribe", fails)
        add(runner, 1, asking(SHORT))
    add(runner, 2, asking(SHORT))
    outcomes = [outcome for step in finish(runner) for outcome in step]
    (failed,) = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    assert (failed.key, failed.error.code) == (1, "engine_error")
    assert isinstance(outcomes[-1], TranscriptionProgress) and outcomes[-1].is_complete and outcomes[-1].key == 2


def test_a_speech_model_reports_its_capabilities(runner: TranscriptionRunner) -> None:
    model = runner.model
    assert (model.model_type, model.capabilities, model.layers) == ("whisper", ["transcribe"], 3)


# Loading.


@pytest.mark.parametrize(
    "field",
    [
        "adapter_path",
        "draft_path",
        "chat_template_name",
        "tool_format",
        "context_len",
        "kv_bits",
        "dtype",
        "reasoning_start",
    ],
)
def test_settings_of_models_that_generate_are_refused(folder: Path, field: str) -> None:
    value: Any = {"context_len": 10, "kv_bits": 4, "dtype": "float32"}.get(field, "x")
    with pytest.raises(RequestError, match="does not use it") as refused:
        open_runner(folder, **{field: value}, **({"reasoning_end": "x"} if field == "reasoning_start" else {}))
    assert (refused.value.code, refused.value.field) == ("unsupported", field)


def test_a_folder_without_weights_without_some_or_without_a_tokenizer_is_bad(tmp_path: Path) -> None:
    folder = write_whisper(tmp_path / "whisper")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"n_text_layer": 3}))
    with pytest.raises(RequestError, match="of its weights"):
        open_runner(folder)
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(RequestError, match="tokenizer files"):
        open_runner(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(RequestError, match="no weights"):
        open_runner(folder)


def test_a_load_that_is_cancelled_in_the_middle_lets_that_pass(folder: Path) -> None:
    def cancel(stage: str, *rest: object) -> None:
        if stage == "warm_up":
            raise LoadCancelled

    engine = MlxModelLoader()
    engine.prepare()
    with pytest.raises(LoadCancelled):
        engine.open(Load(path=str(folder)), cancel, lambda: None)


# Recordings.


@pytest.mark.parametrize("rate", nightly_but({8000, 16_000, 44_100}, [8000, 11_025, 16_000, 44_100, 48_000]))
def test_a_recording_is_resampled_chunk_by_chunk_as_if_whole(rate: int) -> None:
    times = np.arange(90 * rate) / rate
    sound = Sound(np.asarray(np.sin(2 * np.pi * 330 * times), np.float32), rate, b"")
    recording = Recording(sound, 16_000)
    while recording.resample_chunk():
        pass
    whole = recording.samples(0, recording.length)
    assert (recording.length, len(whole), recording.duration_s) == (90 * 16_000, 90 * 16_000, 90)
    np.testing.assert_allclose(whole, resample(sound, 16_000), atol=1e-4)
    np.testing.assert_array_equal(recording.samples(24_160, 56_480), whole[24_160:56_480])
    expected = np.sin(2 * np.pi * 330 * np.arange(16_000, 89 * 16_000) / 16_000)
    np.testing.assert_allclose(whole[16_000 : 89 * 16_000], expected, atol=2e-2)


def test_recordings_are_resampled_beside_the_engine(
    runner: TranscriptionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's thread resamples none of the windows, and other requests go on while a recording is held up."""
    from mlx_audio import resample as polyphase

    goes_on, threads = threading.Event(), set[threading.Thread]()
    real = polyphase.resample_audio_array

    def held_up(*arguments: Any, **options: Any) -> Any:
        threads.add(threading.current_thread())
        assert threading.current_thread() is threading.main_thread() or goes_on.wait(SECONDS)
        return real(*arguments, **options)

    monkeypatch.setattr(polyphase, "resample_audio_array", held_up)
    request, ready = asking(LONG), threading.Event()
    add(runner, 1, asking(SHORT))
    prepared = runner.prepare(request, ready.set)
    assert any(isinstance(event, TranscriptSegment) for events in finish(runner) for event in events)
    assert prepared is not None and not prepared.done
    goes_on.set()
    assert ready.wait(SECONDS)
    runner.add(2, request, 0, prepared=prepared)
    events = [event for events in finish(runner) for event in events]
    assert isinstance(events[-1], TranscriptionProgress) and events[-1].is_complete
    assert threads and threading.main_thread() not in threads


def test_a_dropped_recording_is_not_resampled_to_its_end(
    runner: TranscriptionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks: list[int] = []
    monkeypatch.setattr(Recording, "resample_chunk", lambda self: chunks.append(self.length) or True)
    add(runner, 1, asking(LONG))
    runner.remove(1)
    runner.preparer.threads["recording"].submit(lambda: None).result(SECONDS)  # by then that thread holds none of it
    gc.collect()
    for _ in range(3):
        runner.resampler.submit(lambda: None).result(SECONDS)
    before = len(chunks)
    for _ in range(3):
        runner.resampler.submit(lambda: None).result(SECONDS)
    assert before == len(chunks) > 0


def test_an_error_of_resampling_fails_its_request_alone(
    runner: TranscriptionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlx_audio import resample as polyphase

    def fail(*arguments: Any, **options: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(polyphase, "resample_audio_array", fail)
        add(runner, 1, asking(LONG))
    add(runner, 2, asking(SHORT))
    events = [event for events in finish(runner) for event in events]
    assert [event.key for event in events if isinstance(event, Failed)] == [1]
    assert isinstance(events[-1], TranscriptionProgress) and events[-1].is_complete and events[-1].key == 2
