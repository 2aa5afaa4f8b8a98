"""Nothing in the working directory runs: it may be an untrusted repository, given to a model for a review."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import random_model
from lmwire.child_process import child_environment
from support.http.http_server import served_process
from support.http.raw_http import asked, chat_body
from support.process.lmwire_command import LMWIRE
from support.process.worker_process import SECONDS, WorkerProcess

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "clients" / "python" / "conformance_driver.py"
BRIDGE = ROOT / "worker" / "bridge.py"

MODULES = (
    *("lmwire", "lmwire_worker", "lmwire_protocol", "lmwire_http", "lmwire_conformance", "sitecustomize"),
    *("usercustomize", "json", "signal", "runpy", "typing", "asyncio", "argparse", "tempfile", "random", "queue"),
    *("msgspec", "mlx", "mlx_lm", "mlx_vlm", "numpy", "transformers", "huggingface_hub", "jinja2", "llguidance", "PIL"),
    *("starlette", "uvicorn", "prometheus_client", "rich", "numba", "torch", "src"),
)
"""Modules that the commands import, that their libraries look for, and that Python itself looks for."""

CLIENT = """
import lmwire
with lmwire.Worker() as worker:
    worker.load("builtin:tiny")
    print(worker.chat([{"role": "user", "content": "Who are you?"}], max_tokens=5).text)
print(len(lmwire.local_models()) > 0)
"""


class Repository:
    """A directory whose Python modules record that they ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repository"
        self._markers = folder / "marks"
        self.folder.mkdir()
        self._markers.mkdir()
        for module in MODULES:
            marker = f"open({str(self._markers / module)!r}, 'w').close()\n"
            (self.folder / f"{module}.py").write_text(marker)

    def ran(self) -> list[str]:
        """Return the modules that ran."""
        return sorted(marker.name for marker in self._markers.iterdir())

    def run(self, *command: str, stdin: str = "", **environment: str) -> str:
        """Run a command in the directory, check that it succeeds, and return its output."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | {"HF_HUB_OFFLINE": "1"} | environment,
            input=stdin,
            text=True,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    repository = Repository(tmp_path)
    yield repository
    assert repository.ran() == []


def test_the_modules_of_the_directory_would_be_seen_to_run(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.run(sys.executable, "-c", "import json, mlx")
    assert repository.ran() == ["json", "mlx"]


def test_chat_reviews_piped_input(repository: Repository) -> None:
    answer = repository.run(LMWIRE, "chat", "-p", "Who are you?", "--max-tokens", "5", stdin="+ import json\n")
    assert answer.strip()


def test_models_are_listed(repository: Repository) -> None:
    assert "builtin:tiny" in [model["id"] for model in json.loads(repository.run(LMWIRE, "models", "--json"))]


def test_a_server_answers(repository: Repository) -> None:
    with served_process("builtin:tiny", directory=repository.folder) as server:
        body = chat_body("Who are you?", model="builtin:tiny", max_tokens=5)
        assert asked(server.url, "POST", "/v1/chat/completions", body).status == 200


@pytest.mark.nightly
def test_a_benchmark_compares_with_programs_of_its_own(repository: Repository, tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path / "model", num_hidden_layers=1)
    report = repository.run(LMWIRE, "bench", "pipe", "--model", str(model), "--tokens", "3", "--rounds", "1")
    assert "against stream_generate" in report


@pytest.mark.parametrize("side", ["worker", "host"])
def test_the_kits_pass(repository: Repository, side: str) -> None:
    if side == "worker":
        program = ("--only", "F-13", "--", LMWIRE, "mock")
    else:
        program = ("--only", "startup.sends-hello-first", "--", sys.executable, str(DRIVER))
    assert "pass" in repository.run(LMWIRE, "conformance", side, "--timeout", str(SECONDS), *program)


def test_the_python_client_gets_its_answer(repository: Repository) -> None:
    text, listed = repository.run(sys.executable, "-P", "-c", CLIENT).rsplit("\n", 2)[:2]
    assert text.strip()
    assert listed == "True"


def test_relative_entries_of_pythons_paths_do_not_reach_a_child(repository: Repository) -> None:
    # -E, so that the host itself ignores the variables that its children must not get.
    path = os.pathsep.join(("", ".", os.environ["PYTHONPATH"]))
    command = (sys.executable, "-P", "-E", "-c", CLIENT)
    assert "True" in repository.run(*command, PYTHONPATH=path, PYTHONUSERBASE=".", PYTHONINSPECT="1")


@pytest.mark.parametrize("command", [[LMWIRE, "worker"], [LMWIRE, "mock"], [sys.executable, str(BRIDGE), "--mock"]])
def test_a_worker_that_another_program_starts_answers(repository: Repository, command: list[str]) -> None:
    with WorkerProcess(command=command, cwd=repository.folder) as worker:
        path = "builtin:tiny" if command[-1] == "worker" else "mock"
        worker.load(path)
        assert worker.call({"id": "g", "cmd": "generate", "prompt": "a b", "max_tokens": 2})["event"] == "done"
        assert worker.quit() == 0


def test_a_models_name_is_not_resolved_in_the_directory(tmp_path: Path) -> None:
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    with WorkerProcess(cwd=tmp_path, env=offline) as worker:
        for name in ("owner/model", "model", "qwen3-0.6b"):
            random_model.write_model(tmp_path / name)
            for field in ("path", "draft_path"):
                named = {"id": f"{name} as {field}", "cmd": "load", "path": f"./{name}"}
                refused = worker.call(named | {field: name})
                assert refused["code"] == "model_not_found"
                assert refused["error"].endswith(f"write ./{name}")
        worker.load("./model", draft_path="./model")


@pytest.mark.nightly  # the test above shows it of a worker, tests/http/pool/test_download.py of a pool
@pytest.mark.parametrize("name", ["owner/model", "model"])
def test_a_server_does_not_take_a_models_name_for_a_folder(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    random_model.write_model(tmp_path / name)
    with served_process(name, directory=tmp_path) as server:
        assert server.process.wait(SECONDS) == os.EX_UNAVAILABLE
        assert f"write ./{name}" in server.wait_for_line("cannot start")
    with served_process(f"./{name}", directory=tmp_path) as server:
        ask = chat_body("Who are you?", model=f"./{name}", max_tokens=3)
        assert asked(server.url, "POST", "/v1/chat/completions", ask).status == 200


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"PYTHONPATH": "/libraries:/more"}, {"PYTHONPATH": "/libraries:/more"}),
        ({"PYTHONPATH": ":/libraries:"}, {"PYTHONPATH": "/libraries"}),
        ({"PYTHONPATH": "src:/libraries:."}, {"PYTHONPATH": "/libraries"}),
        ({"PYTHONPATH": ""}, {}),
        ({"PYTHONPATH": ":"}, {}),
        ({"PYTHONHOME": "python", "PYTHONUSERBASE": ".", "PYTHONPYCACHEPREFIX": "cache"}, {}),
        ({"PYTHONINSPECT": "1"}, {}),
        ({"PYTHONSAFEPATH": "1", "PYTHONSTARTUP": "start.py"}, {"PYTHONSAFEPATH": "1", "PYTHONSTARTUP": "start.py"}),
        ({"PATH": ":/bin", "LANG": "C"}, {"PATH": ":/bin", "LANG": "C"}),
    ],
)
def test_an_absolute_path_is_the_users_own(given: dict[str, str], expected: dict[str, str]) -> None:
    assert child_environment(given) == expected
