"""The manual pages have every option of every command, and the programs that show them accept them."""

import argparse
import subprocess
from pathlib import Path

import pytest

from lmwire.cli.arguments.commands import walk
from lmwire.cli.command_tree import complete_parser
from man_pages import write_man_pages
from support.process.programs import program
from support.process.worker_process import SECONDS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    write_man_pages(folder)
    return folder


@pytest.mark.slow
def test_each_option_is_in_the_page_of_its_command(folder: Path) -> None:
    for parser in walk(complete_parser()):
        page = (folder / f"{parser.prog.replace(' ', '-')}.1").read_text().replace("\\-", "-")
        for action in parser._actions:
            if action.help != argparse.SUPPRESS:
                for name in action.option_strings or [str(action.metavar)]:
                    assert f"{name}\\fR" in page, (parser.prog, name)


def test_an_option_has_its_variable_and_a_workers_has_none(folder: Path) -> None:
    assert "LMWIRE_SERVE_MAX_QUEUE" in (folder / "lmwire-serve.1").read_text()
    assert "Variable:" not in (folder / "lmwire-worker.1").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["groff", "-man", "-ww", "-b", "-Tutf8"],
        ["mandoc", "-T", "lint", "-W", "error"],
    ],
    ids=lambda command: command[0],
)
def test_programs_that_show_manual_pages_accept_them(folder: Path, command: list[str]) -> None:
    done = subprocess.run(
        [program(command[0]), *command[1:], *sorted(map(str, folder.iterdir()))],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
