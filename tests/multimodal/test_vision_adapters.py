"""Adapters on models that see: trained with mlx-lm on the text part, or with mlx-vlm on the whole."""

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm
import pytest
from mlx.utils import tree_flatten
from mlx_vlm.trainer.peft.utils import get_peft_model
from mlx_vlm.utils import load_model

from lmwire_protocol import Generate, RequestError
from lmwire_worker.generation.runner import GenerationRunner
from random_model import write_model
from support.media.shown_images import image, shown
from support.models.adapters import Host, write_adapter
from support.runners.generation_runners import FolderOf, ask

pytestmark = pytest.mark.slow

PROMPT = [10, 20, 30, 40]
IN_MLX_LM = ["qwen2_5_vl", "qwen3_vl"]
IN_MLX_VLM = ["qwen3_vl", "gemma3", "smolvlm"]


def write_adapter_of_mlx_vlm(folder: Path, model: Path) -> Path:
    """Write an adapter like mlx-vlm's training, with weights that change every answer."""
    network: Any = get_peft_model(load_model(model), rank=4, alpha=40, verbose=False)
    mx.random.seed(1)
    trained: Any = tree_flatten(network.trainable_parameters())
    folder.mkdir()
    weights = {name: mx.random.normal(value.shape) * 0.3 for name, value in trained}
    mx.save_safetensors(str(folder / "adapters.safetensors"), weights)
    (folder / "adapter_config.json").write_text(json.dumps(network.config.lora))
    return folder


def answers(runner: GenerationRunner) -> list[list[int]]:
    """To a text and about two images, computed anew."""
    requests = [Generate(prompt=PROMPT, max_tokens=12), *(shown(image(seed), "What?") for seed in (1, 2))]
    runner.clear_cache()
    return [answer.token_ids for answer in ask(runner, *requests)]


ADAPTERS = [
    *((family, write_adapter) for family in IN_MLX_LM),
    *((family, write_adapter_of_mlx_vlm) for family in IN_MLX_VLM),
]


@pytest.mark.parametrize(
    ("family", "write"),
    [
        adapter
        if adapter[0] == "qwen3_vl"
        else pytest.param(*adapter, marks=pytest.mark.nightly)  # both forms of files
        for adapter in ADAPTERS
    ],
)
def test_an_adapter_changes_answers_about_images_and_can_be_unloaded(
    family: str, write: Any, folder_of: FolderOf, tmp_path: Path
) -> None:
    model = folder_of(family)
    adapter, host = write(tmp_path / "adapter", model), Host()
    plain = answers(host.load(model))
    runner = host.load(model, adapter)
    adapted = answers(runner)
    assert "images" in runner.model.capabilities
    assert all(one != other for one, other in zip(plain, adapted, strict=True))
    assert adapted[1] != adapted[2]
    assert answers(host.load(model)) == plain
    assert host.read[2] == 0, "the model's weights were kept"
    host.close()


@pytest.mark.parametrize("family", IN_MLX_LM)
def test_a_text_is_answered_as_by_mlx_lm_with_the_adapter(family: str, folder_of: FolderOf, tmp_path: Path) -> None:
    model = folder_of(family)
    adapter, host = write_adapter(tmp_path / "adapter", model), Host()
    (answer, *_) = answers(host.load(model, adapter))
    host.close()
    network, tokenizer, *_ = mlx_lm.load(str(model), adapter_path=str(adapter))
    tokens = [step.token for step in mlx_lm.stream_generate(network, tokenizer, PROMPT, max_tokens=12)]
    assert answer == tokens[: len(answer)] != []


def test_an_adapter_of_another_model_is_refused(folder_of: FolderOf, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", write_model(tmp_path / "model", "llama", num_hidden_layers=1))
    with pytest.raises(RequestError) as error:
        Host().load(folder_of("smolvlm"), adapter)
    assert (error.value.code, error.value.field) == ("bad_model", "adapter_path")
    assert "does not fit the model" in error.value.message
