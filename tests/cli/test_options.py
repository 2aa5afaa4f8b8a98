"""Every option of every command changes something that a test sees: tests/support/option_checks.py names the test."""

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lmwire_protocol
import random_model
from lmwire.cli import arguments, bench
from lmwire.cli.option_sources.setting import name_of
from lmwire_http.cli.parser import make_parser
from lmwire_worker import __main__ as worker
from lmwire_worker.mock import command as mock
from support.many_cases import for_each
from support.option_checks import CHECKS
from support.process.lmwire_command import FAKE_WORKER, LMWIRE, Terminal, lmwire, lmwire_here
from support.process.worker_process import WorkerProcess

TESTS = Path(__file__).parents[1]
WORKER = (
    *worker.NUMBERS,
    *worker.DIRECTORIES,
    worker.MODEL,
    worker.MEDIA_URLS[0],
    worker.PROCESS_GROUP[0],
    "--mock",
    "--help",
    "--version",
)
"""The worker's own table of options: it is started too often to wait for argparse."""
ELSEWHERE = ("worker", "mock", "serve")
"""Commands of which the parser has only the names."""


def options(parser: argparse.ArgumentParser, name: str = "lmwire") -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the long names of its options, and the metavars of its positional arguments."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, its_parser in action.choices.items():
                if name != "lmwire" or command not in ELSEWHERE:
                    yield from options(its_parser, f"{name} {command}".removeprefix("lmwire "))
        elif not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:
            found.append(name_of(action))
    if found:
        yield name, found


@cache
def every_option() -> dict[str, list[str]]:
    """Return the options of all commands, by command."""
    return {
        **dict(options(arguments.make_parser())),
        "worker": list(WORKER),
        **dict(options(mock.make_parser(), "mock")),
        **dict(options(make_parser(), "serve")),
    }


@pytest.mark.parametrize("command", every_option())
def test_each_option_has_a_test_that_sees_what_it_changes(command: str) -> None:
    assert set(CHECKS[command]) == set(every_option()[command])


def test_no_command_is_left_out() -> None:
    assert set(CHECKS) == set(every_option())


@for_each(sorted({check for checks in CHECKS.values() for check in checks.values()}))
def test_the_test_exists(check: str) -> None:
    path, _, name = check.partition("::")
    tree = ast.parse((TESTS / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("command", [name for name in every_option() if name not in ("worker", "mock")])
def test_help_lists_every_option(command: str) -> None:
    check_help(command, lmwire_here)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["worker", "mock"])
def test_help_of_a_worker_lists_every_option(command: str) -> None:
    check_help(command, lmwire)


def check_help(command: str, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    shown = run(*command.removeprefix("lmwire").split(), "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    help = shown.stdout.replace("--[no-]", "--")
    assert [option for option in every_option()[command] if option not in help] == []


@pytest.mark.slow
def test_a_worker_shows_its_version() -> None:
    assert lmwire("worker", "--version").stdout == f"lmwire {lmwire_protocol.__version__}\n"


@pytest.mark.slow
def test_a_worker_keeps_files_up_to_its_disk_budget(tmp_path: Path) -> None:
    model = random_model.write_model(tmp_path / "model")
    for folder, budget, expected in (("much", "1000000000", True), ("nothing", "1", False)):
        with WorkerProcess("--cache-dir", str(tmp_path / folder), "--cache-disk-bytes", budget) as worker:
            worker.load(model)
            worker.call({"id": "g", "cmd": "generate", "prompt": [7] * 150, "max_tokens": 8, "ignore_eos": True})
            assert worker.quit() == 0
        assert any(file.is_file() for file in (tmp_path / folder).rglob("*")) == expected


@pytest.mark.slow
def test_every_option_of_a_load_reaches_it() -> None:
    given = ("--adapter", "poet", "--draft", "small", "--context-len", "64", "--kv-bits", "8", "--force")
    given = (*given, "--generation-config", "model", "--dtype", "bfloat16")
    recited = ("--worker", f"{FAKE_WORKER} RecitesTheLoad", "-p", "Hi")
    load = json.loads(lmwire("chat", "model", *recited, *given).stdout)
    wanted = {"adapter_path": "poet", "draft_path": "small", "context_len": 64, "kv_bits": 8, "force": True}
    wanted |= {"generation_config": True, "dtype": "bfloat16"}
    assert load == {"id": load["id"], "cmd": "load", "path": "model", **wanted}


@pytest.mark.slow
def test_chat_shows_the_number_of_drafted_tokens() -> None:
    with Terminal("chat", "builtin:tiny", "--draft", "builtin:tiny", "--max-tokens", "20") as terminal:
        terminal.read_until(">")
        terminal.type("Who are you?\r")
        assert " of them drafted" in terminal.read_until("tok/s")
        terminal.read_until(">")
        terminal.type("\x04")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    "benchmark",
    [
        command.split()[1]
        for command in CHECKS
        if command.startswith("bench ") and command not in ("bench plot", "bench compare")
    ],
)
def test_a_benchmark_uses_its_tokens_and_rounds(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    module: Any = ModuleType(benchmark)
    module.measure = lambda *what: asked.append(what) or []
    monkeypatch.setitem(sys.modules, f"lmwire.cli.bench.benchmarks.{benchmark}", module)
    (tmp_path / "config.json").touch()
    model, tokens = {"hosts": (None, 8192), "start": (None, 32), "agents": (tmp_path, 64)}.get(
        benchmark, (tmp_path, 256)
    )
    given = ["bench", benchmark, *(["--model", str(model)] if model else [])]
    bench.run(arguments.parse([*given, "--tokens", "7", "--rounds", "3"]))
    assert "measured on" in capsys.readouterr().out
    bench.run(arguments.parse([*given, "--json"]))
    assert json.loads(capsys.readouterr().out).get("model") == (str(model) if model else None)
    own = {"ranks": ([2],), "agents": (2048,)}.get(benchmark, ())
    assert asked == [(model, 7, 3, *own), (model, tokens, 5, *own)]


@pytest.mark.slow
def test_the_kit_loads_the_model_that_is_named() -> None:
    kit, program = ("conformance", "worker", "--only", "l-2-barriers"), ("--", LMWIRE, "mock")
    assert lmwire(*kit, "--model", "mock:step_ms=1", *program).returncode == 0
    failed = lmwire(*kit, "--model", "nonesuch", *program)
    assert failed.returncode == 1
    assert "nonesuch" in failed.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("side", "default_s"), [("worker", 60), ("host", 10)])
def test_a_kit_waits_for_its_timeout(side: str, default_s: float, tmp_path: Path) -> None:
    only = {"worker": "f-13-separators", "host": "startup.sends-hello-first"}[side]
    silent = ("--", sys.executable, "-c", "import sys; sys.stdin.read()")
    files = ("--junit", str(tmp_path / "report.xml"), "--json", str(tmp_path / "report.json"))
    waited = lmwire("conformance", side, "--only", only, "--timeout", "0.3", *files, *silent)
    assert waited.returncode == 1, waited.stderr
    (case,) = json.loads((tmp_path / "report.json").read_text())["cases"]
    assert case["seconds"] < default_s
    assert only in (tmp_path / "report.xml").read_text()
