"""The users of all four clients get the same events from the same worker, byte for byte."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lmwire.cli.bench.programs import replay_worker
from lmwire_conformance.host import wire
from support.process.lmwire_command import REPOSITORY
from support.protocol.client_events import expected_events, seen_events
from support.protocol.client_transcripts import TRANSCRIPTS
from support.protocol.mutant_host import DRIVER


def python_driver() -> list[str]:
    return [sys.executable, str(DRIVER), "--events"]


def asyncio_driver() -> list[str]:
    return [*python_driver(), "--asyncio"]


def go_driver() -> list[str]:
    program = REPOSITORY / ".cache/go/conformance"
    run("clients/go", ["go", "build", "-o", str(program), "./internal/conformance"])
    return [str(program), "-events"]


def rust_driver() -> list[str]:
    target = REPOSITORY / ".cache/rust"
    fetch("clients/rust", ["cargo", "fetch", "--quiet"])
    run("clients/rust", ["cargo", "build", "--quiet", "--target-dir", str(target), "--examples"])
    return [str(target / "debug/examples/conformance_driver"), "--events"]


def node_driver() -> list[str]:
    if not (REPOSITORY / "clients/node/node_modules").is_dir():
        fetch("clients/node", ["npm", "ci", "--silent"])
    run("clients/node", ["npm", "run", "--silent", "build"])
    return ["node", str(REPOSITORY / "clients/node/dist/test/conformance-driver.js"), "--events"]


DRIVERS: dict[str, Callable[[], list[str]]] = {
    "python": python_driver,
    "asyncio": asyncio_driver,
    "go": go_driver,
    "rust": rust_driver,
    "node": node_driver,
}


def fetch(folder: str, command: Sequence[str]) -> None:
    """Fetch a client's packages. Skip if the toolchain is missing or its registry out of reach, except with CI=true."""
    if is_ci():
        run(folder, command)
    elif not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    elif subprocess.run(command, check=False, cwd=REPOSITORY / folder).returncode:
        pytest.skip(f"{command[0]} cannot fetch the packages of {folder}")


def run(folder: str, command: Sequence[str]) -> None:
    """Build a client's driver, which takes a moment after `make go rust node`. Skip without the toolchain."""
    if not is_ci() and not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    subprocess.run(command, check=True, cwd=REPOSITORY / folder)


def is_ci() -> bool:
    return os.environ.get("CI") == "true"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of a worker that plays all transcripts."""
    recorded = [{"to": "hello", "lines": [wire.encode(wire.hello_done("$ID")).decode().strip()]}]
    for each in TRANSCRIPTS:
        recorded.append({"to": each.key, "lines": each.lines})
    file = tmp_path_factory.mktemp("replay") / "transcripts.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in recorded), encoding="utf-8")
    return [sys.executable, str(Path(replay_worker.__file__)), str(file)]


@pytest.mark.parametrize("client", DRIVERS)
def test_each_user_gets_the_events_of_the_transcripts(client: str, worker: list[str]) -> None:
    seen = seen_events(DRIVERS[client](), worker, TRANSCRIPTS)
    name = "python" if client == "asyncio" else client
    for transcript in TRANSCRIPTS:
        assert seen[transcript.name] == expected_events(transcript, name), transcript.name
