"""Recipes of embedding models, and the detection of their folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmwire_protocol import Embed, Load, RequestError
from lmwire_worker.embeddings.recipe import EmbeddingRecipe, is_embedding_model
from lmwire_worker.embeddings.runner import EmbeddingRunner
from lmwire_worker.engine.interface import EmbeddingOutput, LoadCancelled
from lmwire_worker.loading.model_loader import MlxModelLoader
from random_model import write_model
from support.models.random_embeddings import write_embedding_model
from support.runners.embedding_runners import open_runner

pytestmark = pytest.mark.slow


def engine() -> MlxModelLoader:
    engine = MlxModelLoader()
    engine.prepare()
    return engine


def vector(runner: EmbeddingRunner, text: str, **fields: Any) -> list[float]:
    runner.add(1, Embed(input=[text], **fields), 0)
    (outcome,) = runner.step()
    assert isinstance(outcome, EmbeddingOutput)
    return outcome.vector.tolist()


@pytest.mark.parametrize("mode", ["cls", "max", "lasttoken"])
def test_the_pooling_is_the_folders(tmp_path: Path, mode: str) -> None:
    names = {"cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens", "lasttoken": "pooling_mode_lasttoken"}
    pooled = write_embedding_model(tmp_path / mode, pooling={names[mode]: True, "pooling_mode_mean_tokens": False})
    mean = write_embedding_model(tmp_path / "mean")
    assert vector(open_runner(pooled), "the sea is wide") != vector(open_runner(mean), "the sea is wide")


def test_a_folder_that_does_not_scale_gives_what_is_pooled_unless_asked(tmp_path: Path) -> None:
    raw = open_runner(write_embedding_model(tmp_path / "raw", modules=("Transformer", "Pooling")))
    scaled = open_runner(write_embedding_model(tmp_path / "scaled"))
    pooled = vector(raw, "the sea", normalize=False)
    length = sum(number**2 for number in pooled) ** 0.5
    assert abs(length - 1) > 0.1
    expected = [number / length for number in pooled]
    np.testing.assert_allclose(vector(raw, "the sea"), expected, atol=1e-5)
    np.testing.assert_allclose(vector(scaled, "the sea", normalize=False), expected, atol=1e-5)


def test_a_default_prompt_is_put_before_every_text(tmp_path: Path) -> None:
    settings = {"prompts": {"query": "find: ", "none": ""}, "default_prompt_name": "query"}
    prompted = open_runner(write_embedding_model(tmp_path / "prompted", settings=settings))
    plain = open_runner(write_embedding_model(tmp_path / "plain", settings={"prompts": {"query": "find: "}}))
    np.testing.assert_allclose(vector(prompted, "the sea"), vector(plain, "find: the sea"), atol=1e-5)


def test_a_folder_bounds_texts_and_may_write_them_in_small_letters(tmp_path: Path) -> None:
    text = {"max_seq_length": 20, "do_lower_case": True}
    runner = open_runner(write_embedding_model(tmp_path / "small", text=text))
    assert runner.model.context_len == 20
    np.testing.assert_allclose(vector(runner, "The SEA"), vector(runner, "the sea"), atol=1e-6)
    with pytest.raises(RequestError, match="takes 20"):
        runner.add(1, Embed(input=["the sea " * 20]), 0)


def test_a_load_can_ask_for_a_shorter_context(tmp_path: Path) -> None:
    assert open_runner(write_embedding_model(tmp_path / "model"), context_len=10).model.context_len == 10


def test_positions_of_roberta_start_after_its_padding(tmp_path: Path) -> None:
    runner = open_runner(write_embedding_model(tmp_path / "model", "xlm-roberta"))
    assert runner.model.context_len == 254


def test_an_embedding_model_reports_its_capabilities(tmp_path: Path) -> None:
    model = open_runner(write_embedding_model(tmp_path / "model")).model
    assert (model.model_type, model.capabilities, model.hidden_size) == ("bert", ["embed", "tokenize"], 64)


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"modules": ("Transformer", "Pooling", "WordWeights")}, "unsupported", "WordWeights"),
        ({"modules": ("Transformer", "Pooling", "Dense")}, "unsupported", "after its pooling"),
        ({"pooling": {"pooling_mode_weightedmean_tokens": True}}, "unsupported", "weightedmean"),
    ],
)
def test_a_way_to_make_vectors_that_is_not_known_is_refused(
    tmp_path: Path, fields: dict[str, Any], code: str, words: str
) -> None:
    folder = write_embedding_model(tmp_path / "model", **fields)
    with pytest.raises(RequestError, match=words) as refused:
        open_runner(folder)
    assert refused.value.code == code


@pytest.mark.parametrize("field", ["adapter_path", "draft_path", "reasoning_start"])
def test_settings_of_models_that_generate_are_refused(tmp_path: Path, field: str) -> None:
    with pytest.raises(RequestError, match="does not use it") as refused:
        more = {"reasoning_end": "x"} if field == "reasoning_start" else {}
        open_runner(write_embedding_model(tmp_path / "model"), **{field: "x"}, **more)
    assert (refused.value.code, refused.value.field) == ("unsupported", field)


def test_a_model_without_some_of_its_weights_is_bad(tmp_path: Path) -> None:
    folder = write_embedding_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(RequestError) as refused:
        open_runner(folder)
    assert refused.value.code == "bad_model"


def test_a_load_that_is_cancelled_in_the_middle_lets_that_pass(tmp_path: Path) -> None:
    folder = write_embedding_model(tmp_path / "model")

    def cancel(stage: str, *rest: object) -> None:
        if stage == "read":
            raise LoadCancelled

    with pytest.raises(LoadCancelled):
        engine().open(Load(path=str(folder)), cancel, lambda: None)


def test_a_model_that_does_not_fit_costs_nobody_the_present_one(tmp_path: Path) -> None:
    engine = MlxModelLoader(memory_limit=1000)
    engine.prepare()
    with pytest.raises(RequestError, match="force"):
        engine.open(Load(path=str(write_embedding_model(tmp_path / "model"))), lambda *progress: None, pytest.fail)


def test_closing_gives_the_memory_back(tmp_path: Path) -> None:
    assert open_runner(write_embedding_model(tmp_path / "model")).close() > 400_000


# Which folders.


def test_a_text_model_is_not_an_embedding_model_unless_its_name_or_folder_says_so(tmp_path: Path) -> None:
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    snapshot = tmp_path / "models--mlx-community--Qwen3-Embedding-0.6B-4bit" / "snapshots" / "3f1c"
    assert not is_embedding_model(tmp_path / "Qwen3-0.6B", config)
    assert not is_embedding_model(tmp_path / "embeddings-free", config | {"model_type": "llama"})
    assert is_embedding_model(tmp_path / "Qwen3-Embedding-0.6B", config)
    assert is_embedding_model(snapshot, config)
    (tmp_path / "plain" / "1_Pooling").mkdir(parents=True)
    assert is_embedding_model(tmp_path / "plain", config)


def test_a_classifier_is_not_an_embedding_model(tmp_path: Path) -> None:
    assert is_embedding_model(tmp_path, {"model_type": "bert", "architectures": ["BertModel"]})
    assert not is_embedding_model(tmp_path, {"model_type": "bert", "architectures": ["BertForSequenceClassification"]})


def test_a_text_model_is_still_opened_as_one(tmp_path: Path) -> None:
    runner = engine().open(Load(path=str(write_model(tmp_path / "qwen3"))), lambda *progress: None, lambda: None)
    assert "chat" in runner.model.capabilities


def test_an_error_for_damaged_settings_names_their_file(tmp_path: Path) -> None:
    folder = write_embedding_model(tmp_path / "model")
    for content, words in (("{", "modules.json"), ("{}", "is not a list")):
        (folder / "modules.json").write_text(content)
        with pytest.raises(RequestError, match=words):
            EmbeddingRecipe.read(folder)
