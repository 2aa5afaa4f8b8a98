"""Shells complete commands, options, files and models with the scripts of `lmwire completion`."""

import os
import subprocess
from pathlib import Path

import pytest

from lmwire.cli.completion import completion_script
from support.process.lmwire_command import lmwire
from support.process.programs import program
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_=$(complete -p lmwire) || exit
function=$(complete -p lmwire | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function lmwire "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
_FAKE_LMWIRE = """#!/bin/sh
[ "$*" = models ] && printf 'MODEL  TYPE\\nbuiltin:tiny  qwen3\\nada/one  qwen3\\nada/two  llama\\n'
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the scripts, one a shell, and of a `lmwire` that lists two models of the hub."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(completion_script(shell))
    fake = folder / "bin" / "lmwire"
    fake.parent.mkdir()
    fake.write_text(_FAKE_LMWIRE)
    fake.chmod(0o755)
    return folder


def run(scripts: Path, *command: str, directory: Path | None = None) -> list[str]:
    environment = os.environ | {"PATH": f"{scripts / 'bin'}:{os.environ['PATH']}", "HOME": str(scripts)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=True, env=environment, cwd=directory or scripts
    )
    return done.stdout.split()


def complete_in_bash(scripts: Path, *words: str, directory: Path | None = None) -> list[str]:
    return run(scripts, "bash", "-c", _BASH, "bash", str(scripts / "bash"), "lmwire", *words, directory=directory)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ch"], ["chat"]),
        (["config", ""], ["path", "show"]),
        (["bench", "p"], ["pipe", "plot"]),
        (["serve", "--max-q"], ["--max-queue"]),
        (["worker", "--media-u"], ["--media-urls"]),
        (["worker", "--no-media-u"], ["--no-media-urls"]),
        (["serve", "--no-pre"], ["--no-preload"]),
        (["mock", "--list"], ["--list-faults"]),
        (["chat", "--reasoning", "o"], ["off", "on"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["chat", "ada/t"], ["ada/two"]),
    ],
)
def test_bash_completes_commands_options_choices_and_models(
    scripts: Path, words: list[str], expected: list[str]
) -> None:
    assert sorted(complete_in_bash(scripts, *words)) == expected


def test_bash_completes_files(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "person.json").touch()
    assert complete_in_bash(scripts, "chat", "--schema", "per", directory=tmp_path) == ["person.json"]


def test_fish_completes_commands_and_options(scripts: Path) -> None:
    def complete(line: str) -> list[str]:
        return run(scripts, program("fish"), "-N", "-c", f"source {scripts / 'fish'}; complete -C '{line}' | cut -f1")

    assert "chat" in complete("lmwire ch")
    assert complete("lmwire serve --max-q") == ["--max-queue"]


def test_zsh_accepts_its_script_and_finds_the_function(scripts: Path) -> None:
    functions = scripts / "functions"
    functions.mkdir()
    (functions / "_lmwire").write_text((scripts / "zsh").read_text())
    load = f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -d {scripts / 'dump'}"
    assert run(scripts, program("zsh"), "-f", "-c", f"{load}; autoload +X _lmwire && print $_comps[lmwire]") == [
        "_lmwire"
    ]
    assert run(scripts, program("zsh"), "-f", "-n", str(functions / "_lmwire")) == []


def test_the_command_prints_the_script(scripts: Path) -> None:
    assert lmwire("completion", "bash").stdout == (scripts / "bash").read_text() + "\n"
