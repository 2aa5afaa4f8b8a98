"""The test programs of the clients, brought up to date once a process: a moment after `make go rust node`."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lmwire.cli.bench.programs.host_programs import PYTHON
from support.process.lmwire_command import REPOSITORY
from support.process.programs import program, refuse

from .mutant_host import DRIVER


def python_program(name: str) -> list[str]:
    """Return the command of a Python program: `conformance` or `bench`."""
    return [sys.executable, str(DRIVER)] if name == "conformance" else PYTHON


def c_program(name: str) -> list[str]:
    """Return the command of a program of the C host: `conformance`, `bench`, `chat` or `test`."""
    built = REPOSITORY / ".cache/c" / f"{name}_program"
    built.parent.mkdir(parents=True, exist_ok=True)
    sources = {
        "conformance": ["test/conformance_driver.c", "lmwire.c"],
        "bench": ["test/bench_host.c", "lmwire.c"],
        "chat": ["test/bundle_chat.c", "lmwire.c"],
        "test": ["test/test_lmwire.c"],
    }[name]
    _run("clients/c", ["cc", "-O1", "-I.", "-o", str(built), *sources])
    return [str(built)]


@cache
def go_program(name: str) -> list[str]:
    """Return the command of a program of the Go client: `conformance`, `bench` or `chat`."""
    built = REPOSITORY / ".cache/go" / name
    _run("clients/go", ["go", "build", "-o", str(built), f"./internal/{name}"])
    return [str(built)]


@cache
def rust_program(name: str) -> list[str]:
    """Return the command of an example of the Rust crate: `conformance`, `bench` or `chat`."""
    target = REPOSITORY / ".cache/rust"
    fetch("clients/rust", ["cargo", "fetch", "--quiet"])
    _run("clients/rust", ["cargo", "build", "--quiet", "--target-dir", str(target), "--examples"])
    example = {"conformance": "conformance_driver", "bench": "bench_host", "chat": "chat"}[name]
    return [str(target / "debug/examples" / example)]


def node_program(name: str) -> list[str]:
    """Return the command of a program of the Node client: `conformance` or `bench`."""
    _build_node_package()
    script = {"conformance": "conformance-driver.js", "bench": "bench-host.js"}[name]
    return ["node", str(REPOSITORY / "clients/node/dist/test" / script)]


def node_app(folder: Path) -> list[str]:
    """Return the command of the script `chat` in a folder, with the Node client in the folder's `node_modules`."""
    package = folder / "node_modules/lmwire"
    _build_node_package("--outDir", str(package / "dist"))
    shutil.copy(REPOSITORY / "clients/node/package.json", package)
    return [program("node"), str(shutil.copy(REPOSITORY / "clients/node/test/chat.mjs", folder))]


@cache
def _build_node_package(*options: str) -> None:
    """Build the package, one test process after another: the first one may install the compiler."""
    lock = REPOSITORY / ".cache/node.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (REPOSITORY / "clients/node/node_modules").is_dir():
            fetch("clients/node", ["npm", "ci", "--silent"])
        if not options or not (REPOSITORY / "clients/node/dist").is_dir():
            _run("clients/node", ["npm", "run", "--silent", "build"])
        if options:  # the package's own tests, which are compiled too, import it from `dist`
            _run("clients/node", ["npm", "run", "--silent", "build", "--", *options])


PROGRAMS = {"python": python_program, "go": go_program, "rust": rust_program, "node": node_program}
"""Functions that return the command of a program, by client."""


def fetch(folder: str, command: Sequence[str]) -> None:
    """Fetch a client's packages. Skip if the toolchain is missing or its registry out of reach, except with CI=true."""
    program(command[0])
    if subprocess.run(command, check=False, cwd=REPOSITORY / folder).returncode:
        refuse(f"{command[0]} cannot fetch the packages of {folder}")


def _run(folder: str, command: Sequence[str]) -> None:
    """Build a client's driver, which takes a moment after `make go rust node`. Skip without the toolchain."""
    program(command[0])
    subprocess.run(command, check=True, cwd=REPOSITORY / folder)
