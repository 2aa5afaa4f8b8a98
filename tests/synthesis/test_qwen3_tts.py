"""Qwen3-TTS, with tiny random models: its speech is that of mlx-audio, and what it cannot do is refused."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_audio.tts.utils import load_model

from lmwire_protocol import Load, RequestError, Speak
from lmwire_worker.engine.interface import SpeechOutput
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.synthesis.qwen3_tts import MAX_FRAMES, STEP_S
from lmwire_worker.synthesis.runner import SynthesisRunner, encode_samples
from support.models.random_synthesis import write_qwen3_tts

pytestmark = pytest.mark.slow

TEXT = "Hello there. How are you?"
FolderOf = Callable[[str], Path]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    root = tmp_path_factory.mktemp("models")
    return cache(lambda kind: write_qwen3_tts(root / kind, kind))


@pytest.fixture(scope="module")
def runner_of(folder_of: FolderOf) -> Callable[[str], SynthesisRunner]:
    return cache(lambda kind: open_runner(folder_of(kind)))


def open_runner(folder: Path, **fields: Any) -> SynthesisRunner:
    loader = MlxModelLoader()
    loader.prepare()
    runner = loader.open(Load(path=str(folder), **fields), lambda *_: None, lambda: None)
    assert isinstance(runner, SynthesisRunner)
    return runner


def speak(runner: SynthesisRunner, seed: int = 1, **fields: Any) -> tuple[bytes, str | None]:
    """Return the samples of a speech, and why it ended."""
    fields = {"text": TEXT, **fields}
    runner.add(0, Speak(**fields), seed)
    samples, reason = b"", None
    while reason is None:
        for event in runner.step():
            assert isinstance(event, SpeechOutput), event
            samples, reason = samples + event.samples, event.finish_reason
    return samples, reason


@pytest.mark.parametrize(
    ("kind", "request_fields", "arguments"),
    [
        ("custom_voice", {}, {"voice": "ada"}),
        ("custom_voice", {"voice": "Grace"}, {"voice": "grace"}),
        ("custom_voice", {"language": "german"}, {"voice": "ada", "lang_code": "german"}),
        ("custom_voice", {"instructions": "Calm."}, {"voice": "ada", "instruct": "Calm."}),
        ("voice_design", {"instructions": "A calm voice."}, {"instruct": "A calm voice."}),
        ("base", {}, {}),
    ],
    ids=str,
)
def test_the_speech_is_that_of_mlx_audio(
    folder_of: FolderOf,
    runner_of: Callable[[str], SynthesisRunner],
    kind: str,
    request_fields: dict[str, Any],
    arguments: dict[str, Any],
) -> None:
    module: Any = load_model(folder_of(kind))
    mx.random.seed(3)
    generated = module.generate(
        TEXT, max_tokens=MAX_FRAMES, split_pattern=None, stream=True, streaming_interval=STEP_S, **arguments
    )
    expected = np.concatenate([np.array(result.audio) for result in generated])
    assert 0 < np.abs(expected).mean() < 0.9
    assert speak(runner_of(kind), 3, **request_fields) == (encode_samples(expected), "stop")


def test_seed_and_voice_determine_the_speech(runner_of: Callable[[str], SynthesisRunner]) -> None:
    runner = runner_of("custom_voice")
    assert speak(runner, 1) == speak(runner, 1) != speak(runner, 2)
    assert speak(runner, 1) != speak(runner, 1, voice="grace")


def test_a_speech_that_was_removed_leaves_nothing_in_the_next(runner_of: Callable[[str], SynthesisRunner]) -> None:
    runner = runner_of("custom_voice")
    expected = speak(runner, 1)
    runner.add(9, Speak(text=TEXT, voice="grace"), 5)
    runner.step()
    runner.remove(9)
    assert speak(runner, 1) == expected


def test_a_long_text_is_spoken_in_parts(
    runner_of: Callable[[str], SynthesisRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmwire_worker.synthesis.qwen3_tts.MAX_CHARACTERS", 16)
    samples, reason = speak(runner_of("custom_voice"))
    first, _ = speak(runner_of("custom_voice"), text="Hello there.")
    assert samples.startswith(first) and len(samples) > len(first) and reason == "stop"


@pytest.mark.parametrize(
    ("kind", "fields", "field", "code", "problem"),
    [
        ("custom_voice", {"voice": "nobody"}, "voice", "invalid_request", "this model has ada, grace"),
        ("custom_voice", {"language": "dutch"}, "language", "invalid_request", "this model has auto, english, german"),
        ("custom_voice", {"speed": 1.5}, "speed", "unsupported", "has one speed"),
        ("voice_design", {}, "instructions", "invalid_request", "describe one"),
        ("voice_design", {"voice": "ada", "instructions": "Calm."}, "voice", "unsupported", "does not use it"),
        ("base", {"instructions": "Calm."}, "instructions", "unsupported", "does not use it"),
    ],
)
def test_a_field_that_the_model_cannot_honour_is_refused(
    runner_of: Callable[[str], SynthesisRunner],
    kind: str,
    fields: dict[str, Any],
    field: str,
    code: str,
    problem: str,
) -> None:
    with pytest.raises(RequestError, match=problem) as refused:
        runner_of(kind).add(0, Speak(text=TEXT, **fields), 0)
    assert (refused.value.field, refused.value.code) == (field, code)


def test_a_small_model_with_voices_takes_no_instructions(tmp_path: Path) -> None:
    runner = open_runner(write_qwen3_tts(tmp_path / "small", tts_model_size="0b6"))
    with pytest.raises(RequestError, match="instructions: this model does not use it"):
        runner.add(0, Speak(text=TEXT, instructions="Calm."), 0)


def test_a_model_whose_code_was_not_examined_is_refused(tmp_path: Path, folder_of: FolderOf) -> None:
    folder = Path(shutil.copytree(folder_of("base"), tmp_path / "kokoro"))
    (folder / "config.json").write_text(json.dumps({"istftnet": {}, "plbert": {}, "n_token": 178}))
    with pytest.raises(RequestError, match="is a Kokoro model") as refused:
        open_runner(folder)
    assert refused.value.code == "unsupported"


def test_a_load_option_of_other_models_is_refused(folder_of: FolderOf) -> None:
    with pytest.raises(RequestError, match="kv_bits: a model that speaks does not use it"):
        open_runner(folder_of("base"), kv_bits=4)


def _without_speech_tokenizer(folder: Path) -> None:
    shutil.rmtree(folder / "speech_tokenizer")


def _change(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def _config(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda folder: _change(folder / "config.json", change)


def _decoder(**fields: Any) -> Callable[[Path], None]:
    return lambda folder: _change(
        folder / "speech_tokenizer" / "config.json", lambda config: config["decoder_config"].update(fields)
    )


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (_without_speech_tokenizer, "lacks the folder speech_tokenizer"),
        (_config(lambda config: config.pop("talker_config")), "has no talker_config"),
        (_config(lambda config: config["talker_config"].update(spk_id={"ada": 1088})), "spk_id that is not below 1088"),
        (_config(lambda config: config["talker_config"].update(spk_id={})), "has no voices"),
        (_config(lambda config: config["talker_config"].update(codec_pad_id=-1)), "codec_pad_id"),
        (_config(lambda config: config["talker_config"].update(codec_language_id={"english": "x"})), "codec_language"),
        (_config(lambda config: config.update(tts_bos_token_id=512)), "tts_bos_token_id that is not below 512"),
        (_config(lambda config: config["talker_config"].update(vocab_size=1024)), "1024 codes or less"),
        (_config(lambda config: config["talker_config"].update(num_hidden_layers=900)), "layers"),
        (_config(lambda config: config["talker_config"].update(num_code_groups=3)), "."),
        (_decoder(num_hidden_layers=900), "layers"),
        (_decoder(num_quantizers=3), "4 codes a frame"),
        (_decoder(latent_dim=64), "fails on a first text"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "is not a tokenizer.json"),
        (lambda folder: (folder / "speech_tokenizer" / "config.json").write_text("[]"), "speech_tokenizer"),
        (lambda folder: (folder / "speech_tokenizer" / "model.safetensors").write_bytes(b"x"), "truncated"),
    ],
    ids=range(16),
)
def test_a_folder_that_does_not_fit_together_is_a_bad_model(
    tmp_path: Path, folder_of: FolderOf, spoil: Callable[[Path], Any], problem: str
) -> None:
    folder = Path(shutil.copytree(folder_of("custom_voice"), tmp_path / "model"))
    spoil(folder)
    with pytest.raises(RequestError, match=problem) as refused:
        open_runner(folder)
    assert refused.value.code == "bad_model"


def test_a_model_that_does_not_fit_is_refused_before_it_is_opened(folder_of: FolderOf) -> None:
    loader = MlxModelLoader(memory_limit=2**20)
    loader.prepare()
    with pytest.raises(RequestError, match=r"needs .* for its weights") as refused:
        loader.open(Load(path=str(folder_of("base"))), lambda *_: None, lambda: pytest.fail("the model was released"))
    assert refused.value.code == "out_of_memory"
