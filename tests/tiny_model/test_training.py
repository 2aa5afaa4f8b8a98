"""Training from nothing, in small: what the GPU does in minutes, for a few steps here."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm import load

import evaluate
import train
from lmwire_worker.models.resolve import BUILTIN
from support.process.worker_process import WorkerProcess
from train import Plan

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = train.SHAPE | {
    "vocab_size": 512,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


def plan(**changes: Any) -> Plan:
    return Plan(**{"steps": 2, "rows": 2, "length": 256, "vocabulary_texts": 100, "processes": 0} | changes)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train.train(folder, plan(), SMALL)
    return folder


def test_a_few_steps_learn_something(tmp_path: Path) -> None:
    first = train.train(tmp_path, plan(steps=1, length=256), SMALL)
    later = train.train(tmp_path, plan(steps=20, length=256, rate=2e-2), SMALL)
    assert later < first - 1


def test_the_same_seed_trains_the_same_model(trained: Path, tmp_path: Path) -> None:
    train.train(tmp_path, plan(), SMALL)
    ours, theirs = (mx.load(str(folder / "model.safetensors")) for folder in (trained, tmp_path))
    assert isinstance(ours, dict) and isinstance(theirs, dict)
    assert ours.keys() == theirs.keys()
    assert all(mx.array_equal(ours[name], theirs[name]) for name in ours)
    assert (trained / "tokenizer.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()


def test_text_made_by_other_processes_is_the_same(trained: Path, tmp_path: Path) -> None:
    train.train(tmp_path, plan(processes=1), SMALL)
    assert (trained / "model.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()


def test_what_it_writes_loads_in_a_worker_and_can_be_evaluated(trained: Path) -> None:
    with WorkerProcess() as worker:
        model = worker.load(trained)
        assert (model["model_type"], model["vocab_size"], model["layers"]) == ("qwen3", 512, 2)
    scores = evaluate.evaluate(trained, amount=1, most_tokens=5)
    assert set(scores) == {example.ability for example in evaluate.held_out(1)}
    assert all(score.asked == 1 for score in scores.values())


def test_no_example_of_a_row_sees_another(trained: Path) -> None:
    model: Any = load(str(trained))[0]
    tokens = mx.random.randint(0, 512, (1, 12))
    example = mx.array([[1] * 6 + [2] * 6])
    targets = mx.full((1, 12), -1)
    targets[0, 6:11] = tokens[0, 7:]
    together = train.loss_of(model, tokens, example, targets)
    alone = train.loss_of(model, tokens[:, 6:], example[:, 6:], targets[:, 6:])
    assert mx.allclose(together, alone, atol=1e-4)


def test_the_model_that_ships_has_the_shape_that_is_trained() -> None:
    import json

    config = json.loads((BUILTIN / "tiny" / "config.json").read_text())
    assert config.items() >= train.SHAPE.items()
