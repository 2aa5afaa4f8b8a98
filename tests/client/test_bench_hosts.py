"""`lmwire bench hosts`, with the Python client in place of those that must be built."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmwire.cli import bench
from lmwire.cli.arguments import parse
from lmwire.cli.bench.programs import host_programs
from lmwire.cli.bench.programs.host_programs import PYTHON, HostProgram
from lmwire.cli.errors import CliError

pytestmark = pytest.mark.slow


def client(command: Sequence[str], *builds: Sequence[str], folder: str = "clients") -> HostProgram:
    return HostProgram("Some language", folder, builds, command, target=1.0)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[HostProgram]:
    """Return the list of the clients to measure, which is empty."""
    programs: list[HostProgram] = []
    monkeypatch.setattr(host_programs, "HOSTS", programs)
    return programs


def run(*options: str) -> None:
    bench.run(parse(["bench", "hosts", "--tokens", "5", "--rounds", "1", *options]))


def test_it_measures_the_events_and_the_start_of_each_client(
    measured: list[HostProgram], capsys: pytest.CaptureFixture[str]
) -> None:
    measured += [client(PYTHON)]
    run("--json")
    report = json.loads(capsys.readouterr().out)
    figures = {figure["name"]: figure for figure in report["figures"]}
    assert [*figures] == ["Some language: events of 32 streams", "Some language: spawn to first token"]
    assert figures["Some language: events of 32 streams"]["value"] > 0
    assert "model" not in report


def test_a_client_that_cannot_be_built_is_named_and_left_out(
    measured: list[HostProgram], capsys: pytest.CaptureFixture[str]
) -> None:
    measured += [
        client([], ["no-such-compiler"]),
        client([], [sys.executable, "-c", "raise SystemExit(1)"]),
        client([], folder="clients/cobol"),
    ]
    with pytest.raises(CliError, match="no client can be measured"):
        run()
    lines = [line for line in capsys.readouterr().err.splitlines() if "not measured" in line]
    assert [line.partition("not measured: ")[2] for line in lines] == [
        "no-such-compiler is not installed",
        f"`{sys.executable} -c raise SystemExit(1)` fails in clients",
        "this installation has no sources of it; run the command in a checkout",
    ]


def test_a_client_that_loses_events_is_not_measured(measured: list[HostProgram]) -> None:
    lossy = 'print(\'{"first_token_ms": 1, "events": 255, "seconds": 1}\')'
    measured += [client([sys.executable, "-c", lossy])]
    with pytest.raises(CliError, match="received 255 events of 256"):
        run()


def test_a_program_that_fails_is_named(measured: list[HostProgram], tmp_path: Path) -> None:
    measured += [client([sys.executable, str(tmp_path / "missing.py")])]
    with pytest.raises(CliError, match=r"missing\.py failed"):
        run()


def test_the_targets_are_twice_the_python_client_and_once_for_node() -> None:
    assert {host.language: host.target for host in host_programs.HOSTS} == {
        "Go": 2.0,
        "Rust": 2.0,
        "C": 2.0,
        "Node": 1.0,
    }
