"""Adapters: put on a model that is loaded, exchanged and dropped, with the weights read once."""

import gc
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm
import pytest

from lmwire_protocol import Generate, RequestError
from lmwire_worker.generation.runner import GenerationRunner
from random_model import write_model
from support.models.adapters import Host, write_adapter
from support.process.worker_process import WorkerProcess
from support.runners.generation_runners import EACH_FAMILY, FolderOf, ask

pytestmark = pytest.mark.slow

Replies = tuple[list[list[int]], list[bytes]]

PROMPTS = ([10, 20, 30, 40], [300, 7, 9])
EMBEDDING = "model.embed_tokens"

KEEPS_A_FUNCTION = """
from mlx_lm.models import llama

ModelArgs = llama.ModelArgs

class Model(llama.Model):
    kept = None

    def __call__(self, tokens, cache=None, **kwargs):
        if self.kept is None:
            self.kept = super().__call__
        return self.kept(tokens, cache=cache, **kwargs)
"""


def replies(runner: GenerationRunner) -> Replies:
    """Return the answers to the prompts, and the exact logits after each prompt."""
    requests = [Generate(prompt=prompt, max_tokens=6, cache="off") for prompt in PROMPTS]
    network: Any = runner.network
    logits = [network(mx.array([prompt])) for prompt in PROMPTS]
    return [answer.token_ids for answer in ask(runner, *requests)], [bytes(memoryview(values)) for values in logits]


def fresh_replies(path: Path, adapter: Path | None = None) -> Replies:
    return replies(Host().load(path, adapter))


def refusal(host: Host, path: Path, adapter: Path | None = None, **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as refused:
        host.load(path, adapter, **fields)
    return refused.value


@pytest.fixture
def model(folder_of: FolderOf) -> Path:
    return folder_of("llama")


@pytest.fixture
def adapter(tmp_path: Path, model: Path) -> Path:
    return write_adapter(tmp_path / "adapter", model)


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_unloading_an_adapter_restores_the_base_model(family: str, folder_of: FolderOf, tmp_path: Path) -> None:
    model = folder_of(family)
    adapter = write_adapter(tmp_path / "adapter", model)
    host = Host()
    base = replies(host.load(model))
    adapted = replies(host.load(model, adapter))
    assert adapted != base
    assert replies(host.load(model)) == base
    assert adapted == fresh_replies(model, adapter)
    assert base == fresh_replies(model)


@pytest.mark.parametrize(
    ("parameters", "family"),
    [
        ({"dora": True}, "llama"),
        ({"keys": [EMBEDDING]}, "llama"),
        ({"keys": [EMBEDDING], "dora": True}, "llama"),
        ({"keys": ["mlp.switch_mlp.gate_proj", "mlp.switch_mlp.down_proj"]}, "qwen3_next"),
    ],
    ids=["DoRA", "embeddings", "DoRA of embeddings", "switch layers"],
)
def test_every_kind_of_layer_is_restored(
    parameters: dict[str, Any], family: str, folder_of: FolderOf, tmp_path: Path
) -> None:
    model = folder_of(family)
    adapter = write_adapter(tmp_path / "adapter", model, **parameters)
    host = Host()
    base = replies(host.load(model))
    adapted = replies(host.load(model, adapter))
    assert adapted != base and adapted == fresh_replies(model, adapter)
    assert replies(host.load(model)) == base


def test_unloading_an_adapter_restores_a_quantised_model(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", "llama", quantize=(4, 32))
    adapter = write_adapter(tmp_path / "adapter", model)
    host = Host()
    base = replies(host.load(model))
    assert replies(host.load(model, adapter)) == fresh_replies(model, adapter) != base
    assert replies(host.load(model)) == base


def test_one_adapter_follows_another(model: Path, adapter: Path, tmp_path: Path) -> None:
    other = write_adapter(tmp_path / "other", model, seed=2, rank=8)
    host = Host()
    first = replies(host.load(model, adapter))
    second = replies(host.load(model, other))
    assert (first, second) == (fresh_replies(model, adapter), fresh_replies(model, other))
    assert first != second


def test_answers_are_those_of_mlx_lm(model: Path, adapter: Path) -> None:
    network, tokenizer, *_ = mlx_lm.load(str(model), adapter_path=str(adapter))
    for prompt, answer in zip(PROMPTS, fresh_replies(model, adapter)[0], strict=True):
        tokens = [part.token for part in mlx_lm.stream_generate(network, tokenizer, prompt, max_tokens=12)]
        assert answer and tokens[: len(answer)] == answer


def test_the_weights_are_read_once(model: Path, adapter: Path) -> None:
    host = Host()
    weights = host.load(model).model.weights_bytes
    with_adapter = host.load(model, adapter).model.weights_bytes
    host.load(model)
    host.load(model, kv_bits=None, context_len=100)
    assert host.read == [weights, with_adapter - weights, 0, 0]
    assert with_adapter > weights


def test_weights_are_read_again_after_an_unload(model: Path) -> None:
    host = Host()
    weights = host.load(model).model.weights_bytes
    host.close()
    host.load(model)
    assert host.read == [weights, weights]


def test_weights_are_read_again_if_the_folder_has_another_model(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", "llama")
    host = Host()
    before = replies(host.load(model))
    write_model(model, "llama", seed=5)
    assert replies(host.load(model)) != before
    assert host.read[0] == host.read[1]


def test_the_prefix_cache_does_not_outlive_a_change_of_adapter(model: Path, adapter: Path) -> None:
    request = Generate(prompt=PROMPTS[0] * 5, max_tokens=8)
    host = Host()
    ask(host.load(model), request)
    runner = host.load(model, adapter)
    stats = runner.cache_stats()
    assert stats is not None and stats.entries == 0
    assert ask(runner, request) == ask(Host().load(model, adapter), request)


def test_a_model_that_keeps_functions_of_its_own_gets_the_adapter_too(
    tmp_path: Path, model: Path, adapter: Path
) -> None:
    keeping = Path(shutil.copytree(model, tmp_path / "keeping"))
    (keeping / "model.py").write_text(KEEPS_A_FUNCTION)
    config = json.loads((keeping / "config.json").read_text())
    (keeping / "config.json").write_text(json.dumps(config | {"model_file": "model.py"}))
    host = Host()
    assert replies(host.load(keeping, trust_remote_code=True)) == fresh_replies(model)
    assert replies(host.load(keeping, adapter, trust_remote_code=True)) == fresh_replies(model, adapter)


def test_unloading_gives_back_the_weights_of_both(model: Path, adapter: Path) -> None:
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    host = Host()
    for _ in range(3):
        host.load(model)
        host.load(model, adapter)
    host.close()
    assert mx.get_active_memory() - before < 1000


def test_the_model_reports_its_adapter(model: Path, adapter: Path) -> None:
    host = Host()
    assert host.load(model, adapter).model.adapter_path == str(adapter)
    assert host.load(model).model.adapter_path is None


# Adapters that cannot be loaded.


def edit_config(adapter: Path, **fields: Any) -> None:
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def edit_weights(adapter: Path, change: Callable[[dict[str, mx.array]], Any]) -> None:
    path = str(adapter / "adapters.safetensors")
    weights: Any = mx.load(path)
    change(weights)
    mx.eval(weights)
    mx.save_safetensors(path, weights)


def cut(adapter: Path) -> None:
    path = adapter / "adapters.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


FIRST = "model.layers.0.self_attn.q_proj.lora_a"
FAULTS: list[tuple[Callable[[Path], Any], str, str]] = [
    (shutil.rmtree, "model_not_found", "not a folder"),
    (lambda adapter: (adapter / "adapter_config.json").unlink(), "bad_model", "adapter_config.json"),
    (lambda adapter: (adapter / "adapter_config.json").write_bytes(b"{"), "bad_model", "not JSON"),
    (lambda adapter: edit_config(adapter, peft_type="LORA"), "unsupported", "PEFT"),
    (lambda adapter: edit_config(adapter, fine_tune_type="full"), "unsupported", "mlx_lm.fuse"),
    (lambda adapter: edit_config(adapter, lora_parameters={"rank": 4}), "bad_model", "scale"),
    (lambda adapter: edit_config(adapter, num_layers="all"), "bad_model", "does not fit"),
    (lambda adapter: edit_config(adapter, lora_parameters={"rank": 5, "scale": 1, "dropout": 0}), "bad_model", "shape"),
    (
        lambda adapter: edit_config(adapter, lora_parameters={"rank": 4, "scale": 1, "dropout": 0, "keys": ["x"]}),
        "bad_model",
        "adapter parameter",
    ),
    (lambda adapter: (adapter / "adapters.safetensors").unlink(), "bad_model", "adapters.safetensors"),
    (cut, "bad_model", "adapters.safetensors"),
    (lambda adapter: edit_weights(adapter, lambda weights: weights.pop(FIRST)), "bad_model", FIRST),
    (lambda adapter: edit_weights(adapter, lambda weights: weights.update(x=mx.zeros(1))), "bad_model", "x: not an"),
]


@dataclass
class Present:
    """A model that is loaded, and what it answers."""

    host: Host
    runner: GenerationRunner
    answers: Replies


@pytest.fixture(scope="module")
def present(folder_of: FolderOf) -> Present:
    host = Host()
    runner = host.load(folder_of("llama"))
    return Present(host, runner, replies(runner))


@pytest.mark.parametrize(("break_it", "code", "named"), FAULTS)
def test_a_faulty_adapter_is_refused_by_name_and_costs_nobody_the_present_model(
    break_it: Callable[[Path], Any], code: str, named: str, model: Path, adapter: Path, present: Present
) -> None:
    break_it(adapter)
    error = refusal(present.host, model, adapter)
    assert (error.code, error.field) == (code, "adapter_path")
    assert named in error.message and str(adapter) in error.message
    assert replies(present.runner) == present.answers


def test_an_adapter_that_names_no_layer_is_refused(model: Path, adapter: Path) -> None:
    edit_config(adapter, lora_parameters={"rank": 4, "scale": 1, "dropout": 0, "keys": ["x"]})
    edit_weights(adapter, lambda weights: weights.clear())
    error = refusal(Host(), model, adapter)
    assert error.code == "bad_model" and "changes nothing" in error.message


def test_an_adapter_of_another_model_is_refused(adapter: Path, folder_of: FolderOf) -> None:
    error = refusal(Host(), folder_of("mamba"), adapter)
    assert (error.code, error.field) == ("bad_model", "adapter_path")


def test_over_the_wire_an_adapter_is_reported_and_a_faulty_one_keeps_the_model(model: Path, adapter: Path) -> None:
    with WorkerProcess() as worker:
        worker.load(model)
        assert worker.load(model, "adapted", adapter_path=str(adapter))["adapter_path"] == str(adapter)
        error = worker.call({"id": "l", "cmd": "load", "path": str(model), "adapter_path": str(model)})
        assert (error["code"], error["field"], error["loaded"]) == ("bad_model", "adapter_path", True)
        assert worker.call({"id": "i", "cmd": "info"})["adapter_path"] == str(adapter)
        worker.call({"id": "g", "cmd": "generate", "prompt": PROMPTS[0], "max_tokens": 6})
        assert worker.token_ids("g") == fresh_replies(model, adapter)[0][0]
        assert worker.load(model, "base").get("adapter_path") is None
        assert worker.quit() == 0
