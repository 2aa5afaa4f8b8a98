"""Programs in C, Go, Rust and Node run the worker of the bundle beside them, and no other."""

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from lmwire_protocol import __version__
from support.bundles.built import linked_copy
from support.process.worker_process import SECONDS
from support.protocol.client_programs import c_program, go_program, node_app, rust_program

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module", params=["c", "go", "rust", "node"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of a program that is alone in a folder."""
    folder = tmp_path_factory.mktemp("built")
    if request.param == "node":
        return node_app(folder)
    [program] = {"c": c_program, "go": go_program, "rust": rust_program}[request.param]("chat")
    return [str(shutil.copy(program, folder))]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return tmp_path / "Größe, 空 白"


@pytest.fixture
def command(built: list[str], app: Path) -> list[str]:
    """Return the command of the program in the app's folder."""
    *interpreter, program = built
    shutil.copytree(Path(program).parent, app)
    return [*interpreter, str(app / Path(program).name)]


def program_of_somebody_else(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "lmwire").write_text("#!/bin/sh\necho a program of somebody else runs >&2\n")
    (folder / "lmwire").chmod(0o755)


def failure(command: list[str], path: str, folder: Path) -> str:
    """Run a program that cannot start its worker, and return its stderr."""
    done = subprocess.run(
        command,
        env={"PATH": path},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode != 0, done.stdout) == (True, "")
    return done.stderr


def test_it_starts_the_bundles_worker_and_streams_an_answer(
    command: list[str], app: Path, bundle: Path, tmp_path: Path
) -> None:
    """`$LMWIRE_WORKER`, which comes after the bundle, leads nowhere."""
    worker = linked_copy(bundle, app / "lmwire") / "lmwire"
    environment = {"PATH": "", "LMWIRE_WORKER": str(tmp_path / "none")}
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        pid, _, version = process.stdout.readline().partition(" ")
        assert version == f"lmwire {__version__}\n"
        assert psutil.Process(int(pid)).exe() == str(worker)
        answer, _ = process.communicate("Who are you?\n", timeout=SECONDS)
    assert (process.returncode, answer.startswith("I am the tiny model")) == (0, True), answer
    assert not psutil.pid_exists(int(pid))


def test_a_bundle_that_cannot_run_is_an_error(command: list[str], app: Path, tmp_path: Path) -> None:
    """The worker on PATH may be another version, and is not started instead."""
    program_of_somebody_else(tmp_path / "bin")
    program_of_somebody_else(app / "lmwire")
    (app / "lmwire" / "lmwire").chmod(0o644)
    assert str(app / "lmwire" / "lmwire") in failure(command, str(tmp_path / "bin"), tmp_path)


@pytest.mark.parametrize("path", ["", ":", "."])
def test_without_a_bundle_the_working_directory_is_not_searched(command: list[str], path: str, tmp_path: Path) -> None:
    program_of_somebody_else(tmp_path)
    problem = failure(command, path, tmp_path)
    # Rust prints the names of an error that `main` returns.
    assert "no worker found: put lmwire on PATH" in problem or "WorkerNotFound" in problem
