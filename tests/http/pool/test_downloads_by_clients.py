"""Downloads that a client asks for: only where the operator allows them, one at a time, in a process of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.http.http_server import Server, served, served_process, wait_until
from support.http.raw_http import Answer, asked
from support.models.fake_hub import Hub, only_hub

pytestmark = pytest.mark.slow
PATH = "/v1/models/download"
ID, ALIAS = "mlx-community/SmolLM2-135M-Instruct", "smollm2-135m"
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with only_hub(ID, tmp_path, monkeypatch) as hub:
        yield hub


@pytest.fixture
def server(hub: Hub) -> Iterator[Server]:
    with served("--download") as server:
        yield server


def status(server: Server) -> dict[str, Any]:
    return asked(server.url, "GET", PATH).json


def size(server: Server, model: str) -> Answer:
    return asked(server.url, "POST", f"{PATH}/size", {"model": model})


def start(server: Server, model: str = ID, **fields: Any) -> Answer:
    return asked(server.url, "POST", PATH, {"model": model, **fields})


def ended(server: Server) -> dict[str, Any]:
    """Return the download, once it has ended."""
    wait_until(lambda: status(server)["download"]["state"] != "running", "the download goes on")
    return status(server)["download"]


def model_ids(server: Server) -> list[str]:
    return [model["id"] for model in asked(server.url, "GET", "/v1/models").json["data"]]


@pytest.mark.parametrize("options", [(), ("builtin:tiny", "--download"), ("--download", "--worker", "anything")])
def test_nothing_is_downloaded_where_the_operator_does_not_allow_it(hub: Hub, options: tuple[str, ...]) -> None:
    with served(*options) as server:
        assert status(server) == {"allowed": False, "download": None}
        for refused in (size(server, ID), start(server)):
            assert (refused.status, refused.json["error"]["code"]) == (403, "downloads_not_allowed")
            assert "start it with --download" in refused.json["error"]["message"]
    assert hub.requests == []


def test_the_size_is_known_before_a_file_is_fetched(hub: Hub, server: Server) -> None:
    told = size(server, ALIAS).json
    files = [file.stat().st_size for file in hub.folder.iterdir()]
    assert (told["model"], told["files"]) == (ID, len(files))
    assert told["total_bytes"] == told["missing_bytes"] == sum(files)
    assert told["free_bytes"] > sum(files) and told["arrived_bytes"] == 0
    assert not [each for each in hub.requests if "/resolve/" in each]


def test_a_downloaded_model_is_listed_at_once(hub: Hub, server: Server) -> None:
    assert ID not in model_ids(server)
    total = size(server, ID).json["missing_bytes"]
    assert start(server, ALIAS, max_bytes=total).json["download"]["state"] == "running"
    done = {"model": ID, "state": "done", "current_bytes": total, "total_bytes": total, "problem": None}
    assert ended(server) == done
    assert ID in model_ids(server)


def test_one_model_is_downloaded_at_a_time_and_a_cancel_makes_room(hub: Hub, server: Server) -> None:
    hub.stall = WEIGHTS
    start(server)
    wait_until(hub.half_sent.is_set, "the download does not begin")
    refused = start(server, "owner/other")
    assert (refused.status, refused.json["error"]["code"]) == (409, "download_running")
    assert asked(server.url, "DELETE", PATH).json["download"]["state"] == "cancelled"
    assert ID not in model_ids(server)
    hub.stall = None
    start(server)
    assert ended(server)["state"] == "done"


def test_a_model_that_is_larger_than_the_user_has_seen_is_not_fetched(hub: Hub, server: Server) -> None:
    start(server, max_bytes=size(server, ID).json["missing_bytes"] - 1)
    failed = ended(server)
    assert (failed["state"], failed["current_bytes"]) == ("failed", 0)
    assert failed["problem"] == "the model has become larger meanwhile; ask for its size again"


def test_what_is_no_name_of_the_hub_is_refused(hub: Hub, server: Server) -> None:
    for name in ("--plan", "-h", "./folder", "/etc", "a/b/c", "", "owner/na me", "nonesuch"):
        for refused in (size(server, name), *([] if name == "nonesuch" else [start(server, name)])):
            assert (refused.status, refused.json["error"]["code"]) == (404, "model_not_found")
            assert "is not a model of the hub" in refused.json["error"]["message"]
    assert hub.requests == []


def test_a_failure_has_its_remedy_and_no_path_of_the_server(hub: Hub, server: Server, tmp_path: Path) -> None:
    hub.refusal, hub.refusal_code = (403, "No"), "GatedRepo"
    start(server)
    assert "accept its terms at" in ended(server)["problem"]
    hub.refusal = None
    (tmp_path / "home").write_text("a file where the cache's folder belongs")
    start(server)
    failed = ended(server)
    assert failed["state"] == "failed" and str(tmp_path) not in failed["problem"]


def test_a_download_ends_with_the_server_however_that_ends(hub: Hub) -> None:
    hub.stall = WEIGHTS
    with served_process("--download") as server:
        start(server)
        wait_until(hub.half_sent.is_set, "the download does not begin")
        children = psutil.Process(server.process.pid).children()
        (downloading,) = [each for each in children if "lmwire_worker.models.hub.pull" in each.cmdline()]
        server.process.kill()
        wait_until(lambda: not downloading.is_running(), "the download goes on without its server")
