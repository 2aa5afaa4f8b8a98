"""Signals in a worker's first moments: each comes when the worker imports a module, whatever the machine's speed."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

from support.process.lmwire_command import LMWIRE
from support.process.worker_process import SECONDS, WorkerProcess

pytestmark = pytest.mark.slow

SITE = str(Path(__file__).parents[1] / "signalling_site")

PROGRAMS = {
    "module": [sys.executable, "-P", "-m", "lmwire_worker", "--mock"],
    "mock": [LMWIRE, "mock"],
    "worker": [LMWIRE, "worker"],
}
LOAD = json.dumps({"id": "l", "cmd": "load", "path": "mock"}).encode() + b"\n"


def start(program: str, **environment: str) -> WorkerProcess:
    """A worker that has been given a command."""
    paths = os.pathsep.join((SITE, os.environ["PYTHONPATH"]))
    worker = WorkerProcess(command=PROGRAMS[program], env=os.environ | {"PYTHONPATH": paths} | environment)
    with suppress(BrokenPipeError):  # it has left already
        worker.write(LOAD)
    return worker


def imports(program: str, file: Path) -> list[str]:
    """Return the modules that a worker imports from the start of `main` to its first reply."""
    with start(program, IMPORTS_TO=str(file)) as worker:
        worker.terminal("l")
    names = file.read_text().split()
    after = names[names.index("lmwire_worker.process.exits") + 1 :]
    return list(dict.fromkeys(dropwhile(lambda name: not name.startswith("lmwire_worker."), after)))


@pytest.mark.parametrize(
    ("program", "number", "every"),
    [
        ("module", SIGTERM, 5),
        pytest.param("module", SIGTERM, 1, marks=pytest.mark.nightly),
        pytest.param("mock", SIGHUP, 1, marks=pytest.mark.nightly),
    ],
)
def test_a_signal_at_any_import_ends_the_worker_with_0(
    program: str, number: Signals, every: int, tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    """For each commit one import of five gets the signal."""

    def end(module: str) -> int:
        with start(program, SIGNAL_AT=f"{module} {number:d}") as worker:
            return worker.process.wait(SECONDS)

    modules = imports(program, tmp_path / "imports")
    assert {"lmwire_worker.worker", "msgspec", "lmwire_worker.session.lifecycle"} <= set(modules)
    modules = modules[::every]
    codes = dict(zip(modules, pool.map(end, modules), strict=True))
    assert {module: code for module, code in codes.items() if code != 0} == {}


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("module", "lmwire_worker.process.stdio"),
        ("mock", "lmwire_worker.worker"),
        ("module", "msgspec"),
        ("mock", "lmwire_worker.session.lifecycle"),
    ],
)
def test_sigint_is_ignored_from_the_start(program: str, module: str) -> None:
    with start(program, SIGNAL_AT=f"{module} {SIGINT:d}") as worker:
        assert worker.terminal("l")["event"] == "done"
        assert worker.quit() == 0
        assert worker.stderr == b""


@pytest.mark.parametrize(
    "module",
    [
        "lmwire_worker.process.stdio",
        "lmwire_worker.loading.model_loader",
        "mlx.core",
        "mlx_lm.models.cache",
        "tokenizers",
    ],
)
def test_a_signal_while_a_real_worker_imports_its_libraries_ends_it_with_0(module: str) -> None:
    with start("worker", SIGNAL_AT=f"{module} {SIGTERM:d}") as worker:
        assert worker.process.wait(SECONDS) == 0
        assert b"Traceback" not in worker.stderr


def test_a_wrong_command_line_still_exits_with_64(tmp_path: Path) -> None:
    with WorkerProcess(command=[*PROGRAMS["worker"], "--sing"]) as worker:
        assert worker.wait_end() == 64
