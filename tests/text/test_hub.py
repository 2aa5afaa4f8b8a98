"""Models by hub id: from the cache without a network call, fetched with progress otherwise."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from huggingface_hub import constants

import load_model
from imitation_hub import Hub, running
from random_model import write_model
from random_speech import write_whisper
from worker_process import SECONDS


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with running(Hub(write_model(tmp_path / "served"))) as hub:
        yield hub


def load(hub: Hub, *arguments: str, path: str = "owner/model", **environment: str) -> dict[str, Any]:
    """One load in a fresh process; its cache lies beside the hub's folder and lasts for the test."""
    hub.requests.clear()
    settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(hub.folder.parent / "home")}
    output = subprocess.run(
        [sys.executable, load_model.__file__, path, *arguments],
        env=os.environ | settings | environment,
        stdout=subprocess.PIPE,
        timeout=SECONDS,
        check=True,
    ).stdout
    return json.loads(output)


def stages(told: dict[str, Any], stage: str) -> list[tuple[int, int | None]]:
    return [(current, total) for name, current, total, _ in told["progress"] if name == stage]


def test_a_model_is_fetched_once_and_then_loads_without_any_request(hub: Hub) -> None:
    first = load(hub)
    assert "snapshots" in first["model"] and hub.requests

    second = load(hub)
    assert second["model"] == first["model"]
    assert hub.requests == []
    assert not stages(second, "download")


def test_so_is_one_that_writes_down_speech_whose_weights_have_another_name(tmp_path: Path) -> None:
    folder = write_whisper(tmp_path / "served")
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    with running(Hub(folder)) as hub:
        first = load(hub)
        assert "snapshots" in first["model"] and hub.requests
        assert load(hub, HF_ENDPOINT="http://127.0.0.1:9")["model"] == first["model"]


def test_a_model_on_disk_loads_while_the_hub_is_down(hub: Hub) -> None:
    load(hub)
    assert "model" in load(hub, HF_ENDPOINT="http://127.0.0.1:9")


def test_a_download_tells_its_bytes_and_a_cancel_in_it_keeps_the_files_that_arrived(hub: Hub) -> None:
    mx.save_safetensors(str(hub.folder / "model-2.safetensors"), {"ballast": mx.zeros(25_000_000 // 4)})
    sizes = {file.name: file.stat().st_size for file in hub.folder.iterdir()}
    small = sum(sizes.values()) - sizes["model-2.safetensors"]
    hub.stall = "model-2.safetensors"

    cancelled = load(hub, "download", str(small + constants.DOWNLOAD_CHUNK_SIZE))
    assert cancelled["cancelled"] and not cancelled["replaced"]
    assert stages(cancelled, "download")[-1][1] == sum(sizes.values())
    assert {unit for stage, *_, unit in cancelled["progress"] if stage == "download"} == {"bytes"}
    arrived = {file.name for file in hub.folder.parent.glob("home/hub/*/snapshots/*/*")}
    assert arrived and "model-2.safetensors" not in arrived

    hub.stall = None
    again = load(hub, "download", "999999999")
    missing = sizes.keys() - arrived  # the last of the small files may not have got its name yet
    assert stages(again, "download")[-1][1] == sum(sizes[name] for name in missing)
    fetched = [
        request.rsplit("/", 1)[1] for request in hub.requests if request.startswith("GET") and "resolve" in request
    ]
    assert sorted(fetched) == sorted(missing)


def test_a_cancel_is_not_held_back_by_a_hub_that_stands_still(hub: Hub) -> None:
    hub.stall = "model.safetensors"
    assert load(hub, "download", "1")["cancelled"]


def test_a_snapshot_that_lacks_a_file_is_completed(hub: Hub) -> None:
    folder = Path(load(hub)["model"])
    (folder / "model.safetensors").unlink()
    assert load(hub)["model"] == str(folder)
    assert (folder / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("refusal", "retryable"),
    [((401, "Invalid credentials"), False), ((403, "Access is gated"), False), ((500, "Try later"), True)],
)
def test_a_refusing_hub_is_quoted(hub: Hub, refusal: tuple[int, str], retryable: bool) -> None:
    hub.refusal = refusal
    told = load(hub)
    assert (told["code"], told["retryable"]) == ("model_not_found", retryable)
    assert "owner/model" in told["message"] and str(refusal[0]) in told["message"]
    assert not told["replaced"]


def test_an_unknown_id_is_not_found(hub: Hub) -> None:
    told = load(hub, path="owner/other")
    assert (told["code"], told["retryable"]) == ("model_not_found", False)
    assert "owner/other" in told["message"]


def test_a_network_that_fails_is_worth_another_try(hub: Hub) -> None:
    told = load(hub, HF_ENDPOINT="http://127.0.0.1:9")
    assert (told["code"], told["retryable"]) == ("model_not_found", True)
    assert "network" in told["message"]


def test_offline_mode_is_named(hub: Hub) -> None:
    told = load(hub, HF_HUB_OFFLINE="1")
    assert (told["code"], told["retryable"]) == ("model_not_found", False)
    assert "HF_HUB_OFFLINE" in told["message"]
    assert hub.requests == []
