"""Every command shows names and messages from outside without a character that a terminal obeys."""

import json
import logging
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from lmwire.cli import arguments, conformance, doctor, ps
from lmwire.cli.chat import summary
from lmwire.cli.doctor import Finding
from lmwire.cli.errors import CliError, run_and_report
from lmwire.cli.progress import show_progress
from lmwire.cli.running import RunningProcess
from lmwire_conformance.report import CaseResult
from lmwire_http.telemetry.logs import TextFormatter
from lmwire_protocol.printable import printable
from lmwire_worker.models import local_models
from support.process.screen import open_screen

HOSTILE = "\x1b]0;owned\x07\x9b2J\u202egnp.exe\u2069\r"
ESCAPED = r"\x1b]0;owned\x07\x9b2J\u202egnp.exe\u2069\r"
RUNNING = RunningProcess(
    pid=1,
    kind="worker",
    url=None,
    host=HOSTILE,
    models=[HOSTILE],
    memory_bytes=0,
    running=None,
    queued=None,
    started_at=0.0,
    problem=HOSTILE,
)


def show_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ps, "find_running", lambda _: [RUNNING, replace(RUNNING, kind="server", url=HOSTILE)])
    ps.run(arguments.parse(["ps"]))


def show_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "check", lambda models, offline: [Finding("fail", "models", HOSTILE, HOSTILE)])
    doctor.run(arguments.parse(["doctor"]))


def show_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Namespace) -> int:
        raise CliError(HOSTILE)

    run_and_report(fail, Namespace())


def show_models(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(check: Any) -> Iterator[local_models.LocalModel]:
        yield local_models.LocalModel(HOSTILE, "", [], 0, HOSTILE, None, None, HOSTILE)

    monkeypatch.setattr(local_models, "find_models", found)
    monkeypatch.setattr(local_models, "exit_now", lambda _: None)
    monkeypatch.setattr("sys.argv", ["list_models", "--all"])
    local_models.main(lambda folder: ({}, None, None), {})


def show_a_broken_model(monkeypatch: pytest.MonkeyPatch) -> None:
    local_models.broken_model(HOSTILE, local_models.Path("."), ValueError(HOSTILE))


def show_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    summary.print_note(HOSTILE)


def show_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CaseResult(name=HOSTILE, rules=(), outcome="fail", expected=HOSTILE, seen=HOSTILE, seconds=0.0)
    conformance.report_cases(Namespace(side="host", junit=None, json=None), [case])


@pytest.mark.slow
@pytest.mark.parametrize(
    "show", [show_processes, show_findings, show_an_error, show_models, show_a_broken_model, show_a_note, show_cases]
)
def test_a_command_shows_it_with_escapes(
    show: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show(monkeypatch)
    shown = "".join(capsys.readouterr())
    assert ESCAPED in shown
    assert printable(shown) == shown


@pytest.mark.parametrize("command", ["ps", "doctor"])
def test_json_for_programs_is_ascii(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ps, "find_running", lambda _: [RUNNING])
    monkeypatch.setattr(doctor, "check", lambda models, offline: [Finding("fail", "models", HOSTILE)])
    parsed = arguments.parse([command, "--json"])
    parsed.run(parsed)
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert HOSTILE in json.loads(shown)[0].values()


def test_a_bar_shows_a_name_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    with show_progress() as shown:
        shown.show("[red]" + HOSTILE, 1, 2, "[red]" + HOSTILE)
    drawn = screen.getvalue()
    assert f"[red]{ESCAPED}" in drawn
    assert not {"\x9b", "\x07", "\u202e"} & set(drawn)


def test_a_line_of_the_log_is_one_line() -> None:
    record = logging.LogRecord("lmwire_http", logging.ERROR, "", 0, "%s", (f"{HOSTILE}\nforged",), None)
    line = TextFormatter().format(record)
    assert line.endswith(f"error {ESCAPED}\\nforged")
    assert line.isprintable()
