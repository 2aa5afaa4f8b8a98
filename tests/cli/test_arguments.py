"""The command line: its help and its exit codes."""

import json
import re
import subprocess
import sys

import pytest

import lmwire_protocol
from lmwire.cli.arguments import make_parser, parse
from lmwire.cli.arguments.commands import subcommands_of
from support.process.lmwire_command import REPOSITORY, lmwire, lmwire_here

USAGE = 64


def test_the_command_alone_shows_what_to_do_next() -> None:
    result = lmwire_here()
    assert (result.returncode, result.stderr) == (0, "")
    shown = set(re.findall(r"^  lmwire (\w+)", result.stdout, flags=re.MULTILINE))
    assert {"chat", "serve", "launch"} <= shown <= set(subcommands_of(make_parser()))


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        (["chta"], "chat"),
        (["sevre", "--port", "1"], "serve"),
        (["chat", "--temprature=1"], "--temperature"),
        (["bench", "pip"], "pipe"),
        (["models", "--jsn"], "--json"),
        (["launch", "clause"], "claude"),
        (["conformance", "host", "--ony", "H-5"], "--only"),
        (["models", "--no-jsn"], "--no-json"),
    ],
)
def test_a_misspelt_command_or_option_gets_a_suggestion(
    arguments: list[str], suggested: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        parse(arguments)
    assert exit.value.code == USAGE
    assert f"did you mean {suggested}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--prot"], "unrecognized arguments: --prot; did you mean --port?\nSee lmwire serve --help\n"),
        (["worker", "--loud"], "--loud"),
        (["worker", "--modle"], "unrecognized arguments: --modle; did you mean --model?\nSee lmwire worker --help\n"),
        (["worker", "--mokc"], "did you mean --mock?"),
        (["mock", "--fualt"], "unrecognized arguments: --fualt; did you mean --fault?\nSee lmwire mock --help\n"),
        (["mock", "--fault", "stal"], "did you mean stall?"),
        (["mock", "--fault", "stall:aftr=1"], "did you mean after?"),
    ],
)
@pytest.mark.slow
def test_the_commands_that_read_their_own_options_suggest_in_the_same_words(arguments: list[str], message: str) -> None:
    result = lmwire(*arguments)
    assert (result.returncode, result.stdout) == (USAGE, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["run"], ["chat"]),
        (["run", "m"], ["chat", "m"]),
        (["run", "m", "Why?"], ["chat", "m", "-p", "Why?"]),
        (["run", "m", "--seed", "7"], ["chat", "m", "--seed", "7"]),
        (["list"], ["models"]),
        (["ls", "--all"], ["models", "--all"]),
    ],
)
def test_the_verbs_of_ollama_work(typed: list[str], meant: list[str]) -> None:
    assert vars(parse(typed)) | {"run": None} == vars(parse(meant)) | {"run": None}


@pytest.mark.parametrize(("verb", "instead"), [("show", "lmwire models"), ("stop", "lmwire ps")])
def test_a_verb_of_ollama_without_a_counterpart_points_the_way(
    verb: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=str(USAGE)):
        parse([verb, "m"])
    assert f"lmwire has no command '{verb}': " in (error := capsys.readouterr().err) and instead in error


def test_a_name_that_resembles_none_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["chat", "--zzzzzz"])
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.slow
def test_the_help_imports_nothing_heavy() -> None:
    code = "import sys; from lmwire.cli.arguments import make_parser; make_parser().format_help(); print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"msgspec", "lmwire_protocol.commands", "difflib", "asyncio", "json", "rich"}.isdisjoint(imported)


@pytest.mark.parametrize("subcommand", ["chat", "bench", "service"])
def test_a_commands_own_parser_is_made_without_the_others(subcommand: str) -> None:
    [(name, own)] = subcommands_of(make_parser(subcommand)).items()
    assert name == subcommand
    assert own.format_help() == subcommands_of(make_parser())[subcommand].format_help()


def test_a_command_line_without_a_known_command_has_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=str(USAGE)):
        parse(["chta"])
    assert "did you mean chat?" in capsys.readouterr().err


@pytest.mark.parametrize("subcommand", ["worker", "mock", "chat", "models", "bench", "schema"])
def test_every_subcommand_is_listed(subcommand: str) -> None:
    assert f"\n    {subcommand} " in lmwire_here("--help").stdout


def test_chat_explains_itself_with_examples() -> None:
    shown = lmwire_here("chat", "--help").stdout
    assert "examples:\n  lmwire chat ./my-model\n" in shown
    assert "Ctrl-C stops an answer" in shown


def test_the_version_is_the_packages() -> None:
    assert lmwire_here("--version").stdout == f"lmwire {lmwire_protocol.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["dance"], ["chat", "--loud"], ["chat", "--seed", "x"], ["bench"], ["bench", "pipe"]]
)
def test_wrong_usage_is_reported_on_stderr_and_exits_with_64(arguments: list[str]) -> None:
    result = lmwire_here(*arguments)
    assert result.returncode == USAGE
    assert result.stdout == ""
    assert arguments[-1] in result.stderr


def test_schema_prints_the_committed_files() -> None:
    folder = REPOSITORY / "protocol" / "schema" / "v1"
    assert lmwire_here("schema").stdout == (folder / "schema.json").read_text()
    assert lmwire_here("schema", "--meta").stdout == (folder / "meta.json").read_text()


@pytest.mark.slow
def test_worker_is_a_worker_on_the_commands_own_pipes() -> None:
    result = lmwire("worker", "--mock", stdin='{"id":"1","cmd":"hello"}\n')
    assert result.returncode == 0
    assert json.loads(result.stdout)["worker"] == f"lmwire {lmwire_protocol.__version__}"
