"""The check of the named models when a server starts: an unknown name ends it at once, with similar names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from random_model import write_model
from support.http.http_server import ServerProcess, served_process
from support.http.raw_http import asked
from support.models.fake_hub import Hub, only_hub
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

NAME = "owner/Small-Model"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with only_hub(NAME, tmp_path, monkeypatch) as hub:
        yield hub


def reason(server: ServerProcess) -> str:
    """Return why a server ended itself."""
    assert server.process.wait(SECONDS) == 69
    return server.wait_for_line("cannot start")


def test_an_unknown_alias_is_refused_with_similar_ones() -> None:
    with served_process("qwen3-06b") as server:
        assert "'qwen3-06b' is not a hub id" in (line := reason(server))
        assert "did you mean qwen3-0.6b" in line


def test_an_unknown_built_in_model_is_refused_with_the_one_that_exists() -> None:
    with served_process("builtin:tyni") as server:
        assert "did you mean builtin:tiny?" in reason(server)


def test_a_name_that_the_hub_does_not_have_is_refused_with_similar_models_of_this_machine(
    hub: Hub, tmp_path: Path
) -> None:
    snapshots = tmp_path / "home" / "hub" / f"models--{NAME.replace('/', '--')}" / "snapshots"
    write_model(snapshots / ("a" * 40))
    with served_process("owner/Small-Modle") as server:
        assert "the hub does not give it" in (line := reason(server))
        assert f"did you mean {NAME}?" in line


def test_a_model_that_the_hub_has_is_not_fetched_for_the_check(hub: Hub) -> None:
    with served_process(NAME) as server:
        assert NAME in asked(server.url, "GET", "/v1/models").body.decode()
        assert [request for request in hub.requests if NAME in request] == [f"GET /api/models/{NAME}"]


def test_a_hub_that_fails_is_logged_and_the_model_is_served(hub: Hub) -> None:
    hub.refusal = (503, "busy")
    with served_process(NAME) as server:
        assert NAME in asked(server.url, "GET", "/v1/models").body.decode()
        assert "the hub failed (HTTP 503)" in server.wait_for_line("cannot be checked")


def test_offline_a_model_that_is_not_on_this_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with served_process(NAME) as server:
        assert "HF_HUB_OFFLINE forbids fetching it" in reason(server)
