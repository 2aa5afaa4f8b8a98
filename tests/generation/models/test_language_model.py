"""The worker builds the network that mlx-lm builds of the same folder."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm import utils

from lmwire_protocol import RequestError
from lmwire_worker.generation.language_model import check_architecture, open_shared_weights
from lmwire_worker.models.architectures import import_architecture, read_config
from random_model import FAMILIES, write_model

pytestmark = pytest.mark.slow


def same_weights(network: nn.Module, other: nn.Module) -> bool:
    weights, others = (dict(tree_flatten(part.parameters())) for part in (network, other))
    assert weights.keys() == others.keys()
    return all(mx.array_equal(weight, others[name]).item() for name, weight in weights.items())


def check(folder: Path) -> nn.Module:
    """Compare a folder's network with mlx-lm's, and return it."""
    found = open_shared_weights(folder, trust_remote_code=False)
    network, config = utils.load_model(folder, lazy=True)
    assert found.config == config
    assert str(found.modules()) == str(network) and not found.modules().training
    assert same_weights(found.modules(), network)
    return found.modules()


def change(folder: Path, name: str, **fields: Any) -> None:
    path = folder / name
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | fields))


def quantized(folder: Path, **settings: Any) -> Path:
    """Write a model, quantise its weights, and return its folder."""
    write_model(folder, "llama", vocab_size=320)
    network = utils.load_model(folder)[0]
    mode = settings.get("mode", "affine")
    sizes = {"group_size": settings["group_size"], "bits": settings["bits"], "mode": mode}

    def choose(name: str, module: nn.Module) -> Any:
        return settings.get(name, True) if hasattr(module, "to_quantized") else False

    nn.quantize(network, **sizes, class_predicate=choose)
    utils.save_model(folder, network)
    change(folder, "config.json", quantization=settings, quantization_config=settings)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plain_model(family: str, tmp_path: Path) -> None:
    check(write_model(tmp_path, family))


@pytest.mark.parametrize(
    "settings",
    [
        {"group_size": 64, "bits": 4},
        {"group_size": 32, "bits": 8, "mode": "affine"},
        {"group_size": 32, "bits": 4, "mode": "mxfp4"},
        {"group_size": 16, "bits": 4, "mode": "nvfp4"},
        {"group_size": 32, "bits": 8, "mode": "mxfp8"},
        {"group_size": 64, "bits": 4, "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 8}},
        {"group_size": 64, "bits": 4, "model.layers.1.mlp.up_proj": False},
    ],
    ids=str,
)
def test_a_quantized_model(settings: dict[str, Any], tmp_path: Path) -> None:
    network = check(quantized(tmp_path, **settings))
    assert any(isinstance(part, nn.QuantizedLinear) for part in network.modules())


def test_layers_that_the_config_does_not_name_are_read_off_the_weights(tmp_path: Path) -> None:
    quantized(tmp_path, **{"group_size": 64, "bits": 4, "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 8}})
    change(tmp_path, "config.json", quantization={"group_size": 64, "bits": 4})
    check(tmp_path)


def test_weights_of_another_library_are_left_to_mlx_lm(tmp_path: Path) -> None:
    quantized(tmp_path, group_size=32, bits=4, mode="mxfp4")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["quantization"]
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert any(isinstance(part, nn.QuantizedLinear) for part in check(tmp_path).modules())


def test_shards_are_read_together(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    weights: Any = mx.load(str(tmp_path / "model.safetensors"))
    names = sorted(weights)
    mx.eval(list(weights.values()))
    (tmp_path / "model.safetensors").unlink()
    for at, part in enumerate((names[::2], names[1::2])):
        path = tmp_path / f"model-{at + 1:05}-of-00002.safetensors"
        mx.save_safetensors(str(path), {name: weights[name] for name in part})
    check(tmp_path)


def test_a_weight_that_is_missing_or_too_many_is_an_error(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    weights: Any = mx.load(str(tmp_path / "model.safetensors"))
    mx.eval(list(weights.values()))
    path, (first, *_) = str(tmp_path / "model.safetensors"), weights
    for changed in ({**weights, "more": mx.zeros(3)}, {name: weights[name] for name in weights if name != first}):
        mx.save_safetensors(path, changed)
        with pytest.raises(RequestError, match="does not load: ValueError"):
            open_shared_weights(tmp_path, trust_remote_code=False)


def test_a_config_is_what_mlx_lm_reads(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    change(tmp_path, "config.json", scale={"__float__": "Infinity"}, list=[{"__float__": "-Infinity"}], eos_token_id=3)
    assert read_config(tmp_path) == utils.load_config(tmp_path)
    change(tmp_path, "generation_config.json", eos_token_id=[1, 2])
    assert read_config(tmp_path) == utils.load_config(tmp_path)
    (tmp_path / "generation_config.json").write_text("{")
    assert read_config(tmp_path) == utils.load_config(tmp_path)


def test_model_types_are_those_of_mlx_lm() -> None:
    renamed = [{"model_type": kind} for kind in utils.MODEL_REMAPPING]
    renamed += [
        {"model_type": kind, "architectures": ["Other", architecture]}
        for kind, architecture in utils.MODEL_ARCHITECTURE_REMAPPING
    ]
    for config in [*renamed, {"model_type": "qwen3"}, {"model_type": "lfm2-vl", "architectures": "One"}]:
        assert import_architecture(config).Model is utils._get_classes(config)[0], config  # noqa: SLF001 -- mlx-lm's


@pytest.mark.parametrize("name", ["none", "cache", "mla"])
def test_an_unknown_architecture_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match=f"no architecture `{name}`") as refused:
        check_architecture({"model_type": name})
    assert refused.value.code == "unsupported"


CHAT = """
import sys
import lmwire_worker.worker
from lmwire_protocol import Chat, Load, Message
from lmwire_worker.engine.interface import TokenDelta
from lmwire_worker.loading.model_loader import MlxModelLoader

loader = MlxModelLoader()
loader.prepare()
runner = loader.open(Load(path="builtin:tiny"), lambda *_: None, lambda: None)
runner.add(1, Chat(messages=[Message(role="user", content="Who are you?")], max_tokens=4), seed=0)
text, reason = "", None
while reason is None:
    for part in runner.step():
        if isinstance(part, TokenDelta):
            text, reason = text + part.text, part.finish_reason
assert text
print(*sorted(UNNEEDED & sys.modules.keys()))
import mlx_lm
from mlx_lm import models
assert not {"transformers", "huggingface_hub"} & sys.modules.keys(), "after the import of mlx_lm"
import resource
before = resource.getrlimit(resource.RLIMIT_NOFILE)
assert mlx_lm.load.__module__ == "mlx_lm.utils" and mlx_lm.__version__
assert "transformers" in sys.modules
assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
print("done")
"""


UNNEEDED = {
    *("huggingface_hub", "llguidance", "mlx_audio", "mlx_vlm", "numpy", "PIL", "psutil", "safetensors", "transformers"),
    "jinja2",  # the sandbox has it
    *("argparse", "difflib"),  # for programs with a help, and for names with a mistake
    *("asyncio", "email", "fractions", "hashlib", "http", "multiprocessing", "random", "secrets", "shutil", "socket"),
    *("ssl", "statistics", "tempfile"),
    "lmwire_worker.generation.prefix_cache.disk_tier",
    "lmwire_worker.generation.sampling.sampler",
    "lmwire_worker.generation.structured_output.constraint_factory",
    "lmwire_worker.generation.structured_output.token_masks",
    "lmwire_worker.media.reader",
    "lmwire_worker.mock",
    "lmwire_worker.models.hub.download",
    "lmwire_worker.models.package_models",
    "lmwire_worker.models.transformers_tokenizer",
    "lmwire_worker.multimodal.vision_model",
    "lmwire_worker.prompts.token_lower_bound",
}
"""Modules that a greedy answer without a grammar needs not. Each takes milliseconds of every start, or megabytes."""


def test_a_start_imports_nothing_that_a_plain_answer_does_not_need() -> None:
    """From then on, mlx_lm is a bare package until someone asks it for more."""
    code = f"UNNEEDED = {UNNEEDED}\n{CHAT}"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout == "\ndone\n", done.stderr


def test_the_names_of_unneeded_modules_are_those_of_modules() -> None:
    """Otherwise, a renamed one would come back unseen."""
    own = [name for name in UNNEEDED if name.startswith("lmwire_worker.")]
    assert [name for name in own if importlib.util.find_spec(name) is None] == []
