"""Models that take images, and the errors for models that cannot."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn

from lmwire_protocol import Load, RequestError
from lmwire_worker.generation.runner import GenerationRunner
from lmwire_worker.loading.model_loader import MlxModelLoader
from lmwire_worker.multimodal import parity_check, prefill
from lmwire_worker.multimodal.network import MultimodalNetwork
from random_model import write_model
from support.media.shown_images import image, shown
from support.process.worker_process import SECONDS
from support.runners.generation_runners import FolderOf, ask, gather, open_runner

pytestmark = pytest.mark.slow

FEW_TOKENS = 8
KEPT_BITS = 0xFFF0_0000
"""The sign, the exponent and 3 bits of a float32: so coarse that two layers move logits as many in bfloat16 do."""


def refusal(folder: Path, engine: MlxModelLoader | None = None, **fields: Any) -> RequestError:
    engine = engine or MlxModelLoader()
    engine.prepare()
    with pytest.raises(RequestError) as error:
        engine.open(Load(path=str(folder), **fields), lambda *_: None, lambda: None)
    return error.value


def without_library() -> MlxModelLoader:
    engine = MlxModelLoader()
    engine.names.remove("mlx_vlm")
    return engine


def text_only(folder: Path, copy: Path) -> Path:
    """The same model as conversions for text leave it: the encoder's settings are there, its weights are not."""
    shutil.copytree(folder, copy)
    weights: Any = mx.load(str(copy / "model.safetensors"))
    language_weights = {name: weight for name, weight in weights.items() if name.startswith("language_model")}
    language_weights.pop("language_model.lm_head.weight", None)
    mx.save_safetensors(str(copy / "model.safetensors"), language_weights, metadata={"format": "mlx"})
    return copy


def test_a_vision_model_reports_images_as_input(runner: GenerationRunner) -> None:
    assert runner.model.capabilities == ["generate", "chat", "tokenize", "images"]
    assert runner.max_batch_size > 1


def test_a_text_model_does_not_report_images_as_input(tmp_path: Path) -> None:
    runner = open_runner(write_model(tmp_path))
    assert runner.model.capabilities == ["generate", "chat", "tokenize"]
    assert gather(runner, shown(image(1))).media is None


@pytest.mark.parametrize(("field", "value"), [("draft_path", "d"), ("kv_bits", 8)])
def test_a_load_option_that_a_vision_model_lacks_is_refused(folder_of: FolderOf, field: str, value: Any) -> None:
    error = refusal(folder_of("smolvlm"), **{field: value})
    assert (error.code, error.field) == ("unsupported", field)
    assert error.message.startswith(f"{field}: ")
    assert error.message.endswith("smolvlm takes images, and such models are loaded without it; leave it out")


def test_without_the_library_the_extra_is_named(folder_of: FolderOf) -> None:
    error = refusal(folder_of("smolvlm"), without_library())
    assert error.code == "unsupported"
    assert "pip install 'lmwire[vision]'" in error.message


def test_without_the_library_a_model_is_loaded_for_text_where_mlx_lm_can(folder_of: FolderOf) -> None:
    engine = without_library()
    engine.prepare()
    runner = engine.open(Load(path=str(folder_of("gemma3"))), lambda *_: None, lambda: None)
    assert isinstance(runner, GenerationRunner)
    assert "images" not in runner.model.capabilities
    (answer,) = ask(runner, shown("What is on ", image(1), "?"))
    assert answer.error is None
    runner.close()


def test_a_conversion_without_the_encoders_weights_is_a_model_for_text(folder_of: FolderOf, tmp_path: Path) -> None:
    runner = open_runner(text_only(folder_of("gemma3"), tmp_path / "text"))
    assert "images" not in runner.model.capabilities


@pytest.mark.parametrize("rounding", [0.0, 1.0], ids=["exact", "that rounds coarsely"])
def test_a_model_with_other_image_features_than_in_mlx_vlm_is_refused(
    rounding: float, folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity_check.ParityCheck, "_rounding", lambda self: rounding)
    see = MultimodalNetwork.forward_embeddings

    def see_mirrored(self: MultimodalNetwork, tokens: mx.array, cache: list[Any], **inputs: Any) -> mx.array:
        inputs["inputs_embeds"] = inputs["inputs_embeds"][..., ::-1]
        return see(self, tokens, cache, **inputs)

    monkeypatch.setattr(MultimodalNetwork, "forward_embeddings", see_mirrored)
    error = refusal(folder_of("qwen3_vl"))
    assert error.code == "unsupported"
    assert "not those that mlx-vlm computes" in error.message


def test_a_model_that_rounds_small_products_otherwise_takes_images(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = nn.Linear.__call__

    def round_few(self: nn.Linear, x: mx.array) -> mx.array:
        product = plain(self, x)
        few = product.size <= FEW_TOKENS * product.shape[-1]
        return (product.view(mx.uint32) & KEPT_BITS).view(mx.float32) if few else product

    monkeypatch.setattr(nn.Linear, "__call__", round_few)
    runner = open_runner(folder_of("qwen3_vl"))
    assert "images" in runner.model.capabilities


def test_a_model_that_takes_more_of_an_image_than_is_known_is_refused(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "SUPPORTED_INPUTS", frozenset({"inputs_embeds"}))
    error = refusal(folder_of("qwen3_vl"))
    assert error.code == "unsupported"
    assert "deepstack_visual_embeds" in error.message


def test_a_model_that_is_wrong_in_a_batch_answers_one_at_a_time(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity_check.ParityCheck, "supports_batching", lambda self: False)
    runner = open_runner(folder_of("smolvlm"))
    assert runner.max_batch_size == 1
    assert ask(runner, shown(image(1), "What is it?"))[0].error is None


def test_a_processor_that_is_not_there_is_named(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folder_of("smolvlm"), folder)
    for name in ("preprocessor_config.json", "processor_config.json"):
        (folder / name).unlink()
    error = refusal(folder)
    assert error.code in ("bad_model", "unsupported")
    assert "processor" in error.message


def test_a_model_with_nothing_that_stands_for_an_image_is_refused(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folder_of("qwen2_5_vl"), folder)
    config = json.loads((folder / "config.json").read_text())
    config["image_token_id"] = 5
    (folder / "config.json").write_text(json.dumps(config))
    error = refusal(folder)
    assert error.code == "unsupported"


def test_a_model_for_text_needs_none_of_the_libraries_for_images(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    code = (
        "import sys; from support.runners.generation_runners import open_runner; from pathlib import Path;"
        "open_runner(Path(sys.argv[1]));"
        "print([name for name in ('mlx_vlm', 'mlx_audio', 'lmwire_worker.multimodal.network') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", code, str(folder)]
    ran = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS, text=True, env=environment)
    assert (ran.stdout, ran.returncode) == ("[]\n", 0), ran.stderr
