"""`lmwire models` on a made-up hub cache."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import random_model
from lmwire import local_models
from support.process.lmwire_command import lmwire

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with one model that can run, and one that cannot for each possible reason."""
    cache = tmp_path_factory.mktemp("hub")
    model = random_model.write_model(tmp_path_factory.mktemp("model"))
    add(cache, "made-up/Good", model)
    (add(cache, "made-up/Half", model) / "model.safetensors").unlink()
    truncate(add(cache, "made-up/Cut", model) / "model.safetensors")
    (add(cache, "made-up/NoConfig", model) / "config.json").unlink()
    configure(add(cache, "made-up/Strange", model), model_type="from_the_future")
    configure(add(cache, "made-up/Quantised", model), quantization={"bits": 4, "group_size": 64})
    configure(add(cache, "made-up/Renamed", model), model_type="mistral")
    add(cache, "made-up/Words", model, kind="datasets")
    configure(add(cache, "made-up/Speech", model), model_type="whisper")
    configure(add(cache, "made-up/Vectors", model), model_type="bert", architectures=["BertModel"])
    configure(add(cache, "made-up/Classes", model), model_type="bert", architectures=["BertForSequenceClassification"])
    return cache


def add(cache: Path, name: str, model: Path, kind: str = "models") -> Path:
    """Put a copy of a model into the cache, as a download would, and return its snapshot."""
    repository = cache / f"{kind}--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / ("a" * 40)
    shutil.copytree(model, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    (repository / "blobs").mkdir()
    return snapshot


def configure(snapshot: Path, **fields: Any) -> None:
    path = snapshot / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def listed(cache: Path, *options: str) -> dict[str, dict[str, Any]]:
    models = json.loads(lmwire("models", "--json", *options, HF_HUB_CACHE=str(cache), XDG_CACHE_HOME=str(cache)).stdout)
    return {model["id"]: model for model in models}


def test_it_lists_what_can_run_and_nothing_else(cache: Path) -> None:
    able = {"made-up/Good", "made-up/Quantised", "made-up/Renamed", "made-up/Speech", "made-up/Vectors"}
    assert set(listed(cache)) == {"builtin:tiny", *able}


def test_a_model_is_described_from_its_files(cache: Path) -> None:
    good, quantised = (listed(cache)[f"made-up/{name}"] for name in ("Good", "Quantised"))
    assert (good["model_type"], good["context_len"], good["bits"], good["problem"]) == ("qwen3", 4096, None, None)
    assert good["size_bytes"] > 100_000
    assert (Path(good["path"]) / "config.json").exists()
    assert quantised["bits"] == 4


def test_the_list_has_the_kind_of_each_model(cache: Path) -> None:
    kinds = {name.rpartition("/")[2]: model["kind"] for name, model in listed(cache, "--all").items()}
    assert (kinds["Good"], kinds["Speech"], kinds["Vectors"], kinds["NoConfig"]) == (
        "text",
        "speech",
        "embeddings",
        None,
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Half", "no weights"),
        ("Cut", "fetch it again"),
        ("NoConfig", "no config.json"),
        ("Strange", "from_the_future"),
        ("Classes", "no architecture `bert`"),
    ],
)
def test_all_shows_why_a_model_cannot_run(cache: Path, name: str, problem: str) -> None:
    assert problem in listed(cache, "--all")[f"made-up/{name}"]["problem"]


def test_for_people_it_is_a_table(cache: Path) -> None:
    shown = lmwire("models", HF_HUB_CACHE=str(cache))
    assert shown.stdout.splitlines()[0].split() == ["MODEL", "TYPE", "WEIGHTS", "CONTEXT", "SIZE"]
    assert re.search(r"^made-up/Quantised +qwen3 +4 bits +4,096 +0\.\d MB$", shown.stdout, flags=re.MULTILINE)
    assert shown.stderr == "5 more cannot run; --all says why.\n"


def test_an_empty_cache_is_not_an_error(tmp_path: Path) -> None:
    shown = lmwire("models", HF_HUB_CACHE=str(tmp_path / "nothing"), XDG_CACHE_HOME=str(tmp_path))
    assert (shown.returncode, len(shown.stdout.splitlines())) == (0, 2)
    assert "lmwire chat owner/name" in shown.stderr
    assert list(listed(tmp_path)) == ["builtin:tiny"]


def test_a_program_gets_the_same_with_the_aliases_and_with_what_cannot_run(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(cache, tmp_path / "hub", symlinks=True)
    add(tmp_path / "hub", "mlx-community/Qwen3-0.6B-4bit", random_model.write_model(tmp_path / "model"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    models = {model.id: model for model in local_models()}
    assert models["mlx-community/Qwen3-0.6B-4bit"].aliases == ["qwen3-0.6b"]
    assert (models["made-up/Good"].problem, models["made-up/Good"].context_len) == (None, 4096)
    assert "no config.json" in (models["made-up/NoConfig"].problem or "")


def test_folders_are_described_instead_of_the_cache(cache: Path, tmp_path: Path) -> None:
    good = next(cache.glob("models--made-up--Good/snapshots/*"))
    found, none = local_models(str(good), str(tmp_path))
    assert (found.id, found.path, found.context_len) == (str(good), str(good.resolve()), 4096)
    assert found.size_bytes == sum(file.stat().st_size for file in good.iterdir())
    assert "no config.json" in (none.problem or "")


def test_the_formats_of_tool_calls_are_listed_with_their_models() -> None:
    lines = lmwire("models", "--tool-formats").stdout.splitlines()
    assert ["mistral_nemo", "Mistral Nemo, Mistral 7B v0.3"] in [line.split(maxsplit=1) for line in lines]
    listed = json.loads(lmwire("models", "--tool-formats", "--json").stdout)
    assert {"name": "mistral_nemo", "models": "Mistral Nemo, Mistral 7B v0.3"} in listed
