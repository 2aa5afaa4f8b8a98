"""Models by hub id: from the cache without a network call, fetched with progress otherwise."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import mlx.core as mx
import mlx_lm.models.qwen3
import pytest
from huggingface_hub import constants

from random_model import write_model
from support.models.fake_hub import Hub, running
from support.models.random_speech import write_whisper
from support.process import load_model
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow


class Loader:
    """A process that loads models of a hub, into a cache of its own or one that other loaders share."""

    def __init__(self, hub: Hub, home: Path, **environment: str) -> None:
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home)}
        self.hub = hub
        self._process = subprocess.Popen(
            [sys.executable, load_model.__file__],
            env=os.environ | settings | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=SECONDS)
        assert self._process.returncode == 0

    def load(
        self, path: str | None = None, cancel: tuple[str, int] | None = None, *, trusted: bool = False
    ) -> dict[str, Any]:
        """Load a model, by default the hub's, and return the events; the hub counts the requests of this load."""
        process = self._process
        assert process.stdin and process.stdout
        self.hub.requests.clear()
        process.stdin.write(json.dumps({"path": path or self.hub.name, "cancel": cancel, "trusted": trusted}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())


@pytest.fixture(scope="module")
def module_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running(Hub(write_model(tmp_path_factory.mktemp("hub") / "served"))) as hub:
        yield hub


@pytest.fixture
def hub(module_hub: Hub) -> Iterator[Hub]:
    """One whose model no test has asked for before, and which refuses nothing."""
    module_hub.name = f"owner/{uuid4().hex}"
    yield module_hub
    module_hub.refusal = module_hub.stall = None


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def module_loader(module_hub: Hub, home: Path) -> Iterator[Loader]:
    with Loader(module_hub, home) as loader:
        yield loader


@pytest.fixture
def loader(hub: Hub, module_loader: Loader) -> Loader:
    assert module_loader.hub is hub
    return module_loader


@pytest.fixture(scope="module")
def cut_off(module_hub: Hub, home: Path) -> Iterator[Loader]:
    """A loader that reaches no hub."""
    with Loader(module_hub, home, HF_ENDPOINT="http://127.0.0.1:9") as loader:
        yield loader


def stages(outcome: dict[str, Any], stage: str) -> list[tuple[int, int | None]]:
    return [(current, total) for name, current, total, _ in outcome["progress"] if name == stage]


def test_a_model_is_fetched_once_and_then_loads_without_any_request(hub: Hub, home: Path, loader: Loader) -> None:
    first = loader.load()
    assert "snapshots" in first["model"] and hub.requests

    with Loader(hub, home) as another:
        second = another.load()
    assert second["model"] == first["model"]
    assert hub.own_requests == []
    assert not stages(second, "download")


def test_a_speech_model_with_weights_under_another_name_is_fetched_once(
    hub: Hub, loader: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_whisper(tmp_path / "served")
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    monkeypatch.setattr(hub, "folder", folder)
    first = loader.load()
    assert "snapshots" in first["model"] and hub.requests
    assert loader.load()["model"] == first["model"]
    assert hub.own_requests == []


def test_a_model_on_disk_loads_while_the_hub_is_down(loader: Loader, cut_off: Loader) -> None:
    loader.load()
    assert "model" in cut_off.load()


def test_a_download_reports_its_bytes_and_goes_on_after_a_cancel(tmp_path: Path) -> None:
    folder, home = write_model(tmp_path / "served"), tmp_path / "home"
    mx.save_safetensors(str(folder / "model-2.safetensors"), {"ballast": mx.zeros(25_000_000 // 4)})
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    with running(Hub(folder)) as hub:
        hub.stall = "model-2.safetensors"
        with Loader(hub, home) as loader:
            cancelled = loader.load(cancel=("download", constants.DOWNLOAD_CHUNK_SIZE))
        assert cancelled["cancelled"] and not cancelled["replaced"]
        assert stages(cancelled, "download")[-1][1] == sum(sizes.values())
        assert {unit for stage, *_, unit in cancelled["progress"] if stage == "download"} == {"bytes"}
        (partial,) = home.glob("hub/*/blobs/*")
        arrived = partial.stat().st_size
        assert arrived >= constants.DOWNLOAD_CHUNK_SIZE

        hub.stall = None
        with Loader(hub, home) as loader:
            again = loader.load()
        assert stages(again, "download")[-1][1] == sum(sizes.values())
        assert hub.ranges == [f"bytes={arrived}-"]


def test_a_stalled_hub_does_not_delay_a_cancel(hub: Hub, loader: Loader) -> None:
    hub.stall = "model.safetensors"
    assert loader.load(cancel=("download", 1))["cancelled"]


def test_a_snapshot_that_lacks_a_file_is_completed(loader: Loader) -> None:
    folder = Path(loader.load()["model"])
    (folder / "model.safetensors").unlink()
    assert loader.load()["model"] == str(folder)
    assert (folder / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("refusal", "retryable"),
    [((401, "Invalid credentials"), False), ((403, "Access is gated"), False), ((500, "Try later"), True)],
)
def test_a_refusing_hub_is_quoted(hub: Hub, loader: Loader, refusal: tuple[int, str], retryable: bool) -> None:
    hub.refusal = refusal
    outcome = loader.load()
    assert (outcome["code"], outcome["retryable"]) == ("model_not_found", retryable)
    assert hub.name in outcome["message"] and str(refusal[0]) in outcome["message"]
    assert not outcome["replaced"]


def test_an_unknown_id_is_not_found(loader: Loader) -> None:
    outcome = loader.load("owner/other")
    assert (outcome["code"], outcome["retryable"]) == ("model_not_found", False)
    assert "owner/other" in outcome["message"]


def test_a_network_failure_is_retryable(hub: Hub, cut_off: Loader) -> None:
    outcome = cut_off.load()
    assert (outcome["code"], outcome["retryable"]) == ("model_not_found", True)
    assert "network" in outcome["message"]


def test_the_error_in_offline_mode_names_the_variable(hub: Hub, home: Path) -> None:
    with Loader(hub, home, HF_HUB_OFFLINE="1") as loader:
        outcome = loader.load()
    assert (outcome["code"], outcome["retryable"]) == ("model_not_found", False)
    assert "HF_HUB_OFFLINE" in outcome["message"]
    assert hub.own_requests == []


def test_a_snapshot_without_a_ref_loads_from_disk(loader: Loader, cut_off: Loader) -> None:
    folder = Path(loader.load()["model"])
    (folder.parents[1] / "refs" / "main").unlink()
    assert cut_off.load()["model"] == str(folder)


@pytest.mark.parametrize("change", [str.upper, lambda name: name.partition("/")[2], lambda name: name[6:].upper()])
def test_a_model_on_disk_has_its_name_in_any_case_and_without_its_owner(
    hub: Hub, loader: Loader, cut_off: Loader, change: Callable[[str], str]
) -> None:
    folder = loader.load()["model"]
    assert cut_off.load(change(hub.name))["model"] == folder


def add_to_cache(home: Path, hub_id: str, folder: str) -> Path:
    """Put the files of a model folder into the cache under another id, and return the snapshot."""
    snapshot = home / "hub" / f"models--{hub_id.replace('/', '--')}" / "snapshots" / ("d" * 40)
    shutil.copytree(folder, snapshot)
    return snapshot


def test_a_name_of_several_models_lists_them(hub: Hub, home: Path, loader: Loader, cut_off: Loader) -> None:
    name = hub.name.partition("/")[2]
    folder = loader.load()["model"]
    other = add_to_cache(home, f"another/{name.upper()}", folder)
    outcome = cut_off.load(name)
    assert (outcome["code"], outcome["retryable"]) == ("model_not_found", False)
    assert outcome["message"] == f"the name '{name}' fits another/{name.upper()} and {hub.name}; write it whole"
    assert cut_off.load(hub.name)["model"] == folder
    (other / "model.safetensors").unlink()  # a model that cannot run does not make a name ambiguous
    assert cut_off.load(name)["model"] == folder


@pytest.mark.parametrize(
    ("alias", "hub_id"),
    [("gemma", "mlx-community/gemma-3-4b-it-4bit"), ("Qwen", "mlx-community/Qwen3.5-4B-MLX-4bit")],
)
def test_an_alias_names_a_model_on_disk(home: Path, loader: Loader, cut_off: Loader, alias: str, hub_id: str) -> None:
    snapshot = add_to_cache(home, hub_id, loader.load()["model"])
    assert cut_off.load(alias)["model"] == str(snapshot)


def test_a_built_in_model_has_its_name_in_any_case(loader: Loader) -> None:
    assert Path(loader.load("Builtin:Tiny")["model"]).name == "tiny"


# The loaders' last test: once they have run a model's code, each load looks for such code among all modules.


def test_code_is_fetched_only_for_a_load_that_trusts_it(
    hub: Hub, loader: Loader, cut_off: Loader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (Path(mlx_lm.models.qwen3.__file__)).read_text().replace("from .", "from mlx_lm.models.")
    folder = write_model(tmp_path / "served")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_file": "model.py"}))
    (folder / "model.py").write_text(source)
    monkeypatch.setattr(hub, "folder", folder)
    refused = loader.load()
    assert (refused["code"], "trust_remote_code" in refused["message"]) == ("unsupported", True)
    assert hub.requests and not [request for request in hub.requests if ".py" in request]
    assert cut_off.load()["code"] == "unsupported"
    loaded = loader.load(trusted=True)
    assert "model" in loaded, loaded
    assert [request for request in hub.requests if request.startswith("GET") and request.endswith("model.py")]
    assert cut_off.load(trusted=True)["model"] == loaded["model"]
