"""Results are kept by version and machine, and two of them are compared."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lmwire.cli.arguments import parse
from lmwire.cli.bench.comparison import history_path
from lmwire.cli.bench.results import Result, as_json
from lmwire.cli.errors import run_and_report

USAGE = 64
MACHINE = {"device": "AMD EPYC", "cores": 2, "lmwire": "0.2.0"}


def bench(*argv: str) -> int:
    arguments = parse(["bench", *argv])
    return run_and_report(arguments.run, arguments)


def written(path: Path, *results: Result, **machine: Any) -> str:
    path.write_text(json.dumps({"machine": MACHINE | machine, "figures": as_json(results)}))
    return str(path)


def one(name: str, value: float, half: tuple[float, float] | None, unit: Any = "x") -> Result:
    return Result(name, value, unit, 1.0, "", half)


def test_a_figure_changed_if_the_rounds_lie_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = written(
        tmp_path / "before.json",
        one("speed", 1.0, (0.9, 1.1)),
        one("noisy", 1.0, (0.5, 1.5)),
        one("slower", 1.0, (0.9, 1.1)),
        one("wait", 30.0, (29.0, 31.0), "ms"),
        one("spawn", 50.0, None, "ms"),
        one("gone", 1.0, None),
    )
    after = written(
        tmp_path / "after.json",
        one("speed", 1.5, (1.2, 1.6)),
        one("noisy", 1.4, (1.3, 1.6)),
        one("slower", 0.5, (0.4, 0.6)),
        one("wait", 15.0, (14.0, 16.0), "ms"),
        one("spawn", 25.0, None, "ms"),
    )
    assert bench("compare", before, after) == 0
    printed = capsys.readouterr().out
    verdicts = {line.split()[0]: line.split("x  ")[-1].strip() for line in printed.splitlines()[1:6]}
    assert (verdicts["speed"], verdicts["noisy"], verdicts["slower"]) == ("better", "as before", "worse")
    assert verdicts["wait"] == "better"
    gains = {line.split()[0]: line for line in printed.splitlines()[1:6]}
    assert " 2.00x" in gains["wait"], "half of the time is twice as good"
    assert gains["spawn"].endswith(" 2.00x"), "without rounds there is no verdict"
    assert "Only one of the files has: gone." in printed
    assert "differ" not in printed


def test_another_machine_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = written(tmp_path / "before.json", one("speed", 1.0, None))
    after = written(tmp_path / "after.json", one("speed", 1.0, None), cores=16, device="H100")
    assert bench("compare", before, after) == 0
    assert "The runs differ in device, cores: compare ratios (x), and no times." in capsys.readouterr().out


def test_files_without_a_common_figure_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = written(tmp_path / "before.json", one("speed", 1.0, None))
    after = written(tmp_path / "after.json", one("speed", 1.0, None, "ms"))
    assert bench("compare", before, after) == USAGE
    assert "no figure in common" in capsys.readouterr().err
    assert bench("compare", before, str(tmp_path / "nosuch.json")) == USAGE


def test_a_result_is_saved_by_version_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module: Any = ModuleType("pipe")
    module.measure = lambda *_: [one("speed", 1.0, (0.9, 1.1))]
    monkeypatch.setitem(sys.modules, "lmwire.cli.bench.benchmarks.pipe", module)
    (model := tmp_path / "Qwen3 0.6B").mkdir()
    (model / "config.json").touch()
    folder = tmp_path / "history"
    assert bench("pipe", "--model", str(model), "--save", str(folder), "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    saved = history_path(folder, "pipe", printed["machine"], str(model))
    assert [path for path in folder.rglob("*") if path.is_file()] == [saved]
    assert saved.name == "pipe-qwen3-0.6b.json"
    assert json.loads(saved.read_text()) == printed
    assert bench("compare", str(saved), str(saved)) == 0
    (blocked := tmp_path / "file").touch()
    assert bench("pipe", "--model", str(model), "--save", str(blocked)) == 1
    assert "--save: cannot write" in capsys.readouterr().err


def test_no_name_leaves_the_folder_of_results() -> None:
    machine = {"device": "../../etc", "cores": 2, "lmwire": ".."}
    assert history_path(Path("all"), "start", machine, None) == Path("all/unknown/etc-2-cores/start.json")


def test_figures_of_several_versions_are_plotted_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        written(tmp_path / f"{version}.json", one("speed", value, None), one("wait", 9, None, "ms"), lmwire=version)
        for version, value in (("0.1.0", 1.0), ("0.2.0", 2.0))
    ]
    assert bench("plot", *files) == 0
    bars = [line.split(" █")[0].strip() for line in capsys.readouterr().out.splitlines() if "█" in line]
    assert bars == ["0.1.0: speed", "0.2.0: speed", "0.1.0: wait", "0.2.0: wait"]
