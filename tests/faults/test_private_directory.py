"""Compiled code comes from a directory of this user alone, even if another made the directories in /tmp first."""

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import random_model
from lmwire_worker.process import exits, private_directory
from lmwire_worker.process.private_directory import private
from support.process.lmwire_command import lmwire
from support.process.worker_process import SECONDS, WorkerProcess

LOADS_AND_MARKS = """
#include <fcntl.h>
__attribute__((constructor)) static void mark(void) { creat("%s", 0600); }
"""
ASK = {"id": "g", "cmd": "generate", "prompt": "Who are you?", "max_tokens": 3, "temperature": 0.7, "seed": 1}


def answer(**environment: str) -> None:
    """Generate with a real worker, which must not fail."""
    with WorkerProcess(env=os.environ | environment) as worker:
        worker.load("builtin:tiny")
        assert worker.call(ASK)["event"] == "done"
        assert worker.quit() == 0


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that anybody can write to, as /tmp is."""
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    return shared


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The names of the libraries that the worker compiles and loads."""
    own = tmp_path_factory.mktemp("own")
    own.chmod(0o700)
    answer(TMPDIR=str(own))
    names = [file.name for file in own.glob("mlx/*/cpu/*.so")]
    if not names:
        pytest.skip("MLX compiles nothing for this device")
    yield names


class Poisoned:
    """A directory with libraries under the names of MLX's own. Each that is loaded leaves a mark."""

    def __init__(self, directory: Path, names: list[str]) -> None:
        self._marker = directory.with_name(f"{directory.name}-was-loaded")
        libraries = directory / "mlx" / importlib.metadata.version("mlx") / "cpu"
        libraries.mkdir(parents=True)
        source = directory / "poison.c"
        source.write_text(LOADS_AND_MARKS % self._marker)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(directory / "poison.so"), str(source)], check=True)
        for name in names:
            (libraries / name).write_bytes((directory / "poison.so").read_bytes())
        for folder, _, _ in os.walk(directory / "mlx"):
            Path(folder).chmod(0o777)

    @property
    def loaded(self) -> bool:
        """Return whether a library was loaded."""
        return self._marker.exists()


@pytest.mark.slow
def test_what_lies_in_a_shared_tmp_is_not_loaded(tmp_path: Path, shared: Path, compiled: list[str]) -> None:
    poisoned = Poisoned(shared, compiled)
    answer(TMPDIR=str(shared), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert not poisoned.loaded
    private_root = tmp_path / "cache" / "lmwire" / "tmp"
    assert private_root.stat().st_mode & 0o777 == 0o700
    assert {file.name for file in private_root.glob("mlx/*/cpu/*.so")} == {*compiled}
    assert not [*shared.glob("lmwire-*")]


@pytest.mark.slow
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path: Path, shared: Path, compiled: list[str]) -> None:
    cache = tmp_path / "cache"
    private_root = cache / "lmwire" / "tmp"
    private_root.mkdir(parents=True)
    poisoned = Poisoned(private_root, compiled)
    private_root.chmod(0o777)
    answer(TMPDIR=str(shared), XDG_CACHE_HOME=str(cache))
    assert not poisoned.loaded


@pytest.mark.slow
def test_a_file_in_the_place_of_the_directory_is_not_in_the_way(tmp_path: Path, shared: Path) -> None:
    (shared / "mlx").write_text("mine")
    (tmp_path / "cache").write_text("no directory either")
    answer(TMPDIR=str(shared), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert [entry.name for entry in shared.iterdir()] == ["mlx"]


@pytest.fixture
def without_a_cache(tmp_path: Path, shared: Path) -> dict[str, str]:
    """An environment in which only a fresh directory is left."""
    (tmp_path / "cache").write_text("no directory")
    return os.environ | {"TMPDIR": str(shared), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def prepare(worker: WorkerProcess) -> None:
    """Wait until a worker has its directory. It is made before any load, and one that fails compiles nothing."""
    assert worker.call({"id": "load", "cmd": "load", "path": "/nonexistent"})["code"] == "model_not_found"


def quit_in_order(worker: WorkerProcess) -> None:
    assert worker.quit() == 0


def end_by_signal(worker: WorkerProcess) -> None:
    worker.process.terminate()
    assert worker.process.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("end", [quit_in_order, end_by_signal])
def test_a_fresh_directory_is_removed_however_the_worker_ends(
    end: Callable[[WorkerProcess], None], shared: Path, without_a_cache: dict[str, str]
) -> None:
    with WorkerProcess(env=without_a_cache) as worker:
        prepare(worker)
        (fresh,) = shared.iterdir()
        assert fresh.stat().st_mode & 0o777 == 0o700
        end(worker)
    assert [*shared.iterdir()] == []


@pytest.mark.slow
def test_a_killed_workers_directory_is_removed_by_the_next_and_a_living_ones_is_not(
    shared: Path, without_a_cache: dict[str, str]
) -> None:
    with WorkerProcess(env=without_a_cache) as living, WorkerProcess(env=without_a_cache) as killed:
        prepare(living)
        its = {*shared.iterdir()}
        prepare(killed)
        (remaining,) = {*shared.iterdir()} - its
        killed.process.kill()
        killed.process.wait()
        with WorkerProcess(env=without_a_cache) as following:
            prepare(following)
            assert not remaining.exists()
            assert its < {*shared.iterdir()}
            assert following.quit() == 0
        assert {*shared.iterdir()} == its
        assert living.quit() == 0


@pytest.mark.slow
@pytest.mark.nightly
def test_a_benchmarks_baseline_loads_nothing_from_a_shared_tmp(tmp_path: Path, shared: Path) -> None:
    model = str(random_model.write_model(tmp_path / "model", num_hidden_layers=1))
    command = ("bench", "pipe", "--model", model, "--tokens", "3", "--rounds", "1")
    run = lmwire(*command, TMPDIR=str(shared), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert run.returncode == 0, run.stderr
    assert [*shared.iterdir()] == []


@pytest.mark.slow
def test_every_exit_of_a_worker_removes_its_directory_first() -> None:
    code = "from lmwire_worker.process.exits import *; on_exit(lambda: 1 / 0)"
    code += "; on_exit(lambda: print('removed')); exit_now(7)"
    run = subprocess.run([sys.executable, "-P", "-u", "-c", code], capture_output=True, timeout=SECONDS, check=False)
    assert (run.returncode, run.stdout) == (7, b"removed\n")
    sources = [file for file in Path(exits.__file__).parents[1].rglob("*.py") if "os._exit(" in file.read_text()]
    # Before a directory is made, where a crash is the purpose, and in the processes that make no directory.
    expected = {"process/exits.py", "faults/process.py"}
    expected |= {"sandbox/__main__.py", "media_decoder/__main__.py", "hub/pull.py"}
    assert {f"{file.parent.name}/{file.name}" for file in sources} == expected


def test_a_directory_is_private_if_only_its_user_has_access(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir(mode=0o700)
    assert private(directory) == str(directory.resolve())
    for mode in (0o750, 0o705, 0o770, 0o777):
        directory.chmod(mode)
        assert private(directory) is None


def test_a_directory_is_not_private_if_another_can_be_put_in_its_place(tmp_path: Path) -> None:
    directory = tmp_path / "parent" / "directory"
    directory.mkdir(mode=0o700, parents=True)
    for mode, private_root in ((0o755, True), (0o775, False), (0o777, False), (0o1777, True)):
        directory.parent.chmod(mode)
        assert (private(directory) is not None) == private_root, oct(mode)


def test_another_users_directory_is_not_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "directory"
    directory.mkdir(mode=0o700)
    monkeypatch.setattr(private_directory.os, "geteuid", lambda: os.getuid() + 1)
    assert private(directory) is None


def test_a_link_is_followed_before_it_is_judged(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(directory)
    assert private(link) == str(directory.resolve())


@pytest.mark.parametrize("path", ["nonesuch", "file", "loop"])
def test_what_is_not_a_directory_is_not_private(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o600)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert private(tmp_path / path) is None
