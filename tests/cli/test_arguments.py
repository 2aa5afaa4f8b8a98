"""The command line: its help and its exit codes."""

import json

import pytest

import lmwire_protocol
from support.process.lmwire_command import REPOSITORY, lmwire

USAGE = 64


def test_without_a_subcommand_it_shows_its_help_and_fails() -> None:
    result = lmwire()
    assert result.returncode == USAGE
    assert "subcommands:" in result.stdout


@pytest.mark.parametrize("subcommand", ["worker", "mock", "chat", "models", "bench", "schema"])
def test_every_subcommand_is_listed_and_has_help_of_its_own(subcommand: str) -> None:
    assert f"\n    {subcommand} " in lmwire("--help").stdout
    result = lmwire(subcommand, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith("usage: ")


def test_chat_explains_itself_with_examples() -> None:
    shown = lmwire("chat", "--help").stdout
    assert "examples:\n  lmwire chat ./my-model\n" in shown
    assert "Ctrl-C stops an answer" in shown


def test_the_version_is_the_packages() -> None:
    assert lmwire("--version").stdout == f"lmwire {lmwire_protocol.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["chat", "--loud"],
        ["chat", "--seed", "x"],
        ["bench"],
        ["bench", "pipe"],
        ["worker", "--loud"],
        ["mock", "--loud"],
    ],
)
def test_wrong_usage_is_reported_on_stderr_and_exits_with_64(arguments: list[str]) -> None:
    result = lmwire(*arguments)
    assert result.returncode == USAGE
    assert result.stdout == ""
    assert arguments[-1] in result.stderr


def test_schema_prints_the_committed_files() -> None:
    folder = REPOSITORY / "protocol" / "schema" / "v1"
    assert lmwire("schema").stdout == (folder / "schema.json").read_text()
    assert lmwire("schema", "--meta").stdout == (folder / "meta.json").read_text()


def test_worker_is_a_worker_on_the_commands_own_pipes() -> None:
    result = lmwire("worker", "--mock", stdin='{"id":"1","cmd":"hello"}\n')
    assert result.returncode == 0
    assert json.loads(result.stdout)["worker"] == f"lmwire {lmwire_protocol.__version__}"
