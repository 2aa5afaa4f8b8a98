"""Benchmark results are drawn in the terminal and as PNG."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lmwire.cli.arguments import parse
from lmwire.cli.bench.results import Result, as_json
from lmwire.cli.errors import run_and_report

USAGE = 64
RESULTS = [
    Result("one stream", 0.94, "x", 0.9, "276 of 293 tok/s"),
    Result("spawn to hello", 118.0, "ms", 200.0, ""),
]


def bench(*argv: str) -> int:
    arguments = parse(["bench", *argv])
    return run_and_report(arguments.run, arguments)


def assert_is_png(path: Path) -> None:
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert imread(path)[..., :3].min() < 0.5  # something is drawn


def test_a_benchmark_plots_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module: Any = ModuleType("pipe")
    module.measure = lambda *_: RESULTS
    monkeypatch.setitem(sys.modules, "lmwire.cli.bench.benchmarks.pipe", module)
    (tmp_path / "config.json").touch()
    assert bench("pipe", "--model", str(tmp_path), "--json", "--plot", str(tmp_path / "plot.png")) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["figures"][0]["name"] == "one stream"
    assert "one stream " in printed.err
    assert_is_png(tmp_path / "plot.png")


def test_files_of_earlier_runs_are_plotted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, result in enumerate(RESULTS):
        (tmp_path / f"{number}.json").write_text(json.dumps({"figures": as_json([result])}))
    assert bench("plot", str(tmp_path / "0.json"), str(tmp_path / "1.json"), "--plot", str(tmp_path / "plot.png")) == 0
    printed = capsys.readouterr().out
    stream, spawn = [line for line in printed.splitlines() if "█" in line]
    assert stream.startswith("one stream") and stream.endswith(" 0.94")
    assert stream.index("|") < stream.rindex("█")
    assert spawn.startswith("spawn to hello") and spawn.endswith("| 118.00")
    assert spawn.count("█") / spawn.index("|") < 0.6
    assert_is_png(tmp_path / "plot.png")


@pytest.mark.parametrize("text", ["", "[]", '{"figures": [{"name": "a"}]}', '{"figures": []}'])
def test_a_file_without_results_is_refused(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    assert bench("plot", str(file)) == USAGE
    assert "lmwire: " in capsys.readouterr().err
    assert bench("plot", str(tmp_path / "nosuch.json")) == USAGE


def test_a_missing_library_is_reported_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"figures": as_json(RESULTS)}))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert bench("plot", str(file)) == 0
    assert bench("plot", str(file), "--plot", str(tmp_path / "plot.png")) == 1
    assert "pip install 'lmwire[plot]'" in capsys.readouterr().err
