"""`lmwire ps` beside a server with a loaded model, and a worker of this process."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest

import lmwire
from lmwire.cli import arguments, ps, running
from lmwire.cli.running import ask_server, find_running, kind_of, model_name
from support.http.http_server import MOCK, ServerProcess, served_process
from support.process.worker_process import SECONDS

KEY = "a-secret-of-32-characters-or-more"


@pytest.fixture(autouse=True)
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the servers of other tests alone, so that no time limit is needed for one that does not answer."""
    everything = psutil.process_iter

    def own() -> Iterator[psutil.Process]:
        tested = {process.pid for process in psutil.Process().children(recursive=True)}
        return (process for process in everything() if process.pid in tested)

    monkeypatch.setattr(psutil, "process_iter", own)
    monkeypatch.setattr(running, "_TIMEOUT_S", SECONDS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("xdg")))
        with served_process("builtin:tiny", "--api-key", KEY) as server:
            request = Request(f"{server.url}/v1/models/load", b'{"model": "builtin:tiny"}')
            request.add_header("authorization", f"Bearer {KEY}")
            request.add_header("content-type", "application/json")
            with urlopen(request, timeout=SECONDS):
                yield server


@pytest.mark.slow
def test_a_server_is_listed_with_its_address_and_the_models_of_its_workers(server: ServerProcess) -> None:
    found = find_running(KEY)
    (itself,) = [process for process in found if process.pid == server.process.pid]
    assert (itself.kind, itself.url, itself.models) == ("server", server.url, ["builtin:tiny"])
    assert (itself.running, itself.queued, itself.problem) == (0, 0, None)
    (worker,) = [process for process in found if process.host == f"lmwire serve ({server.process.pid})"]
    assert (worker.kind, worker.url, worker.models, worker.running) == ("worker", None, ["builtin:tiny"], None)
    assert worker.memory_bytes > 10**7
    assert worker.started_at >= itself.started_at


@pytest.mark.slow
def test_a_server_with_a_key_is_asked_with_it(server: ServerProcess) -> None:
    assert ask_server(server.url, KEY).running == 0
    for wrong in (None, "another"):
        assert ask_server(server.url, wrong).problem == "needs --api-key"


@pytest.mark.slow
def test_a_program_gets_the_same_as_json(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    assert ps.run(arguments.parse(["ps", "--json", "--api-key", KEY])) == 0
    listed = {process["pid"]: process for process in json.loads(capsys.readouterr().out)}
    assert listed[server.process.pid]["models"] == ["builtin:tiny"]
    assert ps.run(arguments.parse(["ps", "--api-key", KEY])) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["PID", "WHAT", "MODEL", "MEMORY", "REQUESTS", "UP"]
    (row,) = [row for row in rows if row.startswith(f"{server.process.pid} ")]
    assert row.split()[1:4] == ["serve", server.url, "builtin:tiny"]
    assert "0 running, 0 queued" in row


@pytest.mark.slow
def test_a_server_names_its_models_before_their_first_request(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"tests/{name}" for name in ("one", "two", "three", "four", "five")]
    with served_process(*names, "--worker", MOCK) as server:
        assert ps.run(arguments.parse(["ps"])) == 0
        (itself,) = [process for process in find_running() if process.pid == server.process.pid]
    assert (itself.models, itself.unloaded_models) == ([], names)
    (row,) = [row for row in capsys.readouterr().out.splitlines() if row.startswith(f"{server.process.pid} ")]
    assert "not loaded: tests/one, tests/two, tests/three and 2 more  " in row


@pytest.mark.slow
def test_a_worker_without_a_model_is_listed_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with lmwire.Worker() as worker:
        assert worker.pid in {process.pid for process in find_running() if process.models == []}
    assert worker.pid not in {process.pid for process in find_running()}


@pytest.mark.slow
def test_a_model_is_listed_until_it_is_unloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with lmwire.Worker() as worker:

        def models() -> list[str]:
            (listed,) = [process.models for process in find_running() if process.pid == worker.pid]
            return listed

        worker.load("builtin:tiny")
        assert models() == ["builtin:tiny"]
        worker.unload()
        assert models() == []
        assert not list(tmp_path.rglob(f"{worker.pid}*"))
        worker.load("builtin:tiny")
        assert models() == ["builtin:tiny"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/hub/models--owner--name-4bit/snapshots/abc", "owner/name-4bit"),
        ("/lib/lmwire_worker/builtin/tiny", "builtin:tiny"),
        ("/home/me/mine", "./mine"),
    ],
)
def test_a_model_has_its_name_though_it_was_loaded_by_its_folder(folder: str, name: str) -> None:
    assert model_name(folder, "./mine") == name


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["/usr/bin/python3.12", "-P", "-m", "lmwire_http", "--port", "0"], "server"),
        (["python", "-P", "-m", "lmwire_worker"], "worker"),
        (["/opt/python", "/opt/bin/lmwire", "serve", "m"], "server"),
        (["/opt/bin/lmwire", "worker"], "worker"),
        (["grep", "lmwire", "serve"], None),
        (["python", "-m"], None),
        (["python", "/opt/bin/lmwire", "chat"], None),
        ([], None),
    ],
)
def test_a_process_is_known_by_its_command_line(command: list[str], kind: str | None) -> None:
    assert kind_of(command) == kind
