"""A worker that was started with a default model."""

import pytest

from support.process.worker_process import WorkerProcess

pytestmark = pytest.mark.slow

HELLO = {"id": "hello", "cmd": "hello"}
LOAD = {"id": "load", "cmd": "load"}


def test_a_load_without_a_path_loads_the_default_model() -> None:
    with WorkerProcess("--model", "builtin:tiny") as worker:
        assert "load.path.absent" in worker.call(HELLO)["features"]
        loaded = worker.call(LOAD)
        assert (loaded["event"], loaded["path"].rpartition("/")[2]) == ("done", "tiny")
        other = worker.call({"id": "other", "cmd": "load", "path": "/no/such/model"})
        assert (other["code"], other["field"]) == ("model_not_found", "path")


def test_the_environment_names_the_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMWIRE_MODEL", "builtin:none")
    with WorkerProcess() as worker:
        refused = worker.call(LOAD)
        assert (refused["code"], "'builtin:none'" in refused["error"]) == ("model_not_found", True)


def test_a_bridge_session_has_the_default_model_too() -> None:
    with WorkerProcess("--mock", "--model", "mock") as worker:
        worker.write(b'{"cmd":"load"}\n')
        assert worker.wait_for(lambda event: "ok" in event)["ok"]


def test_a_mock_has_a_default_model_too() -> None:
    with WorkerProcess("--mock", "--model", "mock") as worker:
        assert "load.path.absent" in worker.call(HELLO)["features"]
        assert worker.call(LOAD)["event"] == "done"


def test_without_a_default_model_a_load_must_name_one() -> None:
    with WorkerProcess("--mock") as worker:
        assert "load.path.absent" not in worker.call(HELLO)["features"]
        refused = worker.call(LOAD)
        assert (refused["code"], refused["field"]) == ("invalid_request", "path")
        assert "is required" in refused["error"]
