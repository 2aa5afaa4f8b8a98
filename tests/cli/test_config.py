"""The config file and environment variables: where they are, what wins, and what is refused."""

import json
import os
import pwd
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmwire.cli.arguments import parse
from lmwire.cli.errors import run_and_report
from lmwire.cli.option_sources import InvalidConfigFile, config_path, read_config_file
from lmwire_http.cli.main import parse as parse_serve
from support.http.http_server import MOCK, served_process
from support.http.raw_http import asked
from support.process.lmwire_command import lmwire_here
from support.process.worker_process import WorkerProcess

USAGE = 64

Configure = Callable[[str], Path]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Return a function that writes the config file of this test and names it in the environment."""

    def write(text: str) -> Path:
        file = tmp_path / "lmwire.toml"
        file.write_text(text)
        file.chmod(0o600)
        monkeypatch.setenv("LMWIRE_CONFIG", str(file))
        return file

    return write


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as exit:
        parse(list(argv))
    assert exit.value.code == USAGE
    return capsys.readouterr().err


def shown(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, Any]:
    arguments = parse(["config", "show", *command, "--json"])
    assert run_and_report(arguments.run, arguments) == 0
    return json.loads(capsys.readouterr().out)["commands"]


# Where the file is.


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.config/lmwire/config.toml"),
        ({"HOME": "/home/ada", "XDG_CONFIG_HOME": "/etc/ada"}, "/etc/ada/lmwire/config.toml"),
        ({"HOME": "/home/ada", "XDG_CONFIG_HOME": "config"}, "/home/ada/.config/lmwire/config.toml"),
        ({"HOME": "/home/ada", "LMWIRE_CONFIG": "/srv/lmwire.toml"}, "/srv/lmwire.toml"),
    ],
)
def test_the_file_has_one_place_that_the_environment_can_change(environment: dict[str, str], path: str) -> None:
    assert config_path(environment) == Path(path)


def test_a_user_without_a_home_has_no_config_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run as a user that its system does not know."""

    def unknown(_: int) -> object:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert config_path({}) == Path(os.devnull)
    assert read_config_file({}).tables == {}


def test_the_file_is_never_one_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("config.toml", "lmwire.toml", ".config/lmwire/config.toml", "lmwire/config.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[chat]\nseed = 1\n")
    assert not read_config_file({"HOME": "/nowhere"}).tables
    assert not read_config_file({"HOME": "/nowhere", "XDG_CONFIG_HOME": "."}).tables
    with pytest.raises(InvalidConfigFile, match="write an absolute path"):
        read_config_file({"LMWIRE_CONFIG": "config.toml"})


def test_a_file_that_is_named_must_exist_and_the_usual_one_need_not(tmp_path: Path) -> None:
    assert not read_config_file({"HOME": str(tmp_path)}).tables
    with pytest.raises(InvalidConfigFile, match="does not exist"):
        read_config_file({"LMWIRE_CONFIG": str(tmp_path / "nosuch.toml")})


def test_the_path_is_printed(tmp_path: Path) -> None:
    assert lmwire_here("config", "path", LMWIRE_CONFIG="", XDG_CONFIG_HOME=str(tmp_path)).stdout == (
        f"{tmp_path}/lmwire/config.toml\n"
    )


# What it sets.


def test_the_command_line_wins_over_the_environment_which_wins_over_the_file(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("[chat]\nseed = 1\ntop-k = 2\ntemperature = 0.5\nmax-tokens = 4\n")
    monkeypatch.setenv("LMWIRE_CHAT_SEED", "11")
    monkeypatch.setenv("LMWIRE_CHAT_TOP_K", "12")
    arguments = parse(["chat", "--seed", "0"])
    assert (arguments.seed, arguments.top_k, arguments.temperature, arguments.max_tokens) == (0, 12, 0.5, 4)


def test_a_variable_of_several_commands_gives_way_to_the_commands_own(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("[chat]\nmodel = 'of the file'\n")
    assert parse(["chat"]).model == "of the file"
    monkeypatch.setenv("LMWIRE_MODEL", "of all")
    assert (parse(["chat"]).model, parse(["launch", "codex"]).model) == ("of all", "of all")
    monkeypatch.setenv("LMWIRE_CHAT_MODEL", "of chat")
    assert (parse(["chat"]).model, parse(["launch", "codex"]).model) == ("of chat", "of all")
    assert parse(["chat", "typed"]).model == "typed"


def test_a_list_of_the_command_line_replaces_that_of_the_file(configure: Configure) -> None:
    configure('[chat]\nstop = ["a b", "c"]\n')
    assert parse(["chat"]).stop == ["a b", "c"]
    assert parse(["chat", "--stop", "d"]).stop == ["d"]


def test_a_command_below_another_has_a_table_below_its_table(configure: Configure, tmp_path: Path) -> None:
    configure(f'[bench.pipe]\nmodel = "{tmp_path}"\njson = true\n')
    arguments = parse(["bench", "pipe"])
    assert (arguments.model, arguments.json, arguments.benchmark) == (tmp_path, True, "pipe")


def test_a_variable_turns_off_what_the_file_turns_on(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    configure("[models]\njson = true\n")
    assert parse(["models"]).json
    monkeypatch.setenv("LMWIRE_MODELS_JSON", "0")
    assert not parse(["models"]).json


def test_a_file_that_an_option_names_is_read_once(configure: Configure) -> None:
    """It may be a pipe, as in `--schema <(make-schema)`."""
    configure("[chat]\nseed = 1\n")
    reading, writing = os.pipe()
    os.write(writing, b'{"type": "object"}')
    os.close(writing)
    assert parse(["chat", "--schema", f"/dev/fd/{reading}"]).schema == {"type": "object"}
    os.close(reading)


@pytest.mark.slow
def test_a_server_takes_its_options_from_the_file(configure: Configure) -> None:
    configure(f'[serve]\nworker = "{MOCK}"\nmodel = ["mock", "other"]\nstrict = true\ndrain = "2m"\n')
    with served_process() as server:
        listed = json.loads(asked(server.url, "GET", "/v1/models").body)
        assert {model["id"] for model in listed["data"]} == {"mock", "other"}
    assert parse_serve([], dict(os.environ)).drain_s == 120


@pytest.mark.slow
def test_a_worker_does_not_read_the_file(configure: Configure) -> None:
    configure("this is not TOML")
    with WorkerProcess("--mock") as worker:
        worker.load("mock")
        assert worker.quit() == 0


# What is refused.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[chat]\ntemprature = 1", "[chat] has no option 'temprature'; did you mean temperature?"),
        ("[chat]\nmax_tokens = 1", "did you mean max-tokens?"),
        ("[chta]\nseed = 1", "lmwire has no command 'chta'; did you mean chat?"),
        ("[bench.pip]\ntokens = 1", "[bench] has no option 'pip'; did you mean pipe?"),
        ("[worker]\nmodel = 'm'", "[worker] has no effect: the host that starts `lmwire worker` gives its options"),
        ("chat = 1", "chat must be a table: write [chat]"),
        ("[chat]\nseed = 'x'", "argument --seed: invalid int value: 'x' (--seed is set by seed in [chat] of "),
        ("[chat]\nseed = true", "argument --seed: True is not text or a number (--seed is set by seed in [chat] of "),
        ("[chat]\nforce = 1", "argument --force: 1 is not true or false"),
        ("[chat]\nstop = 'a'", "argument --stop: 'a' is not an array"),
        ("[chat]\nsystem = 5", "argument --system: 5 is not text: write it in quotes"),
        ("[chat]\nkv-bits = 5", "argument --kv-bits: invalid choice: 5"),
        ("[chat\n", "is not valid TOML"),
        ("a = " + "[" * 100_000, "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_the_key_and_a_similar_name(
    configure: Configure, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = configure(text)
    message = refusal(capsys, "chat")
    assert words in message
    assert str(file) in message


def test_a_server_refuses_a_wrong_file_too(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    file = configure("[serve]\nprot = 8081\n")
    with pytest.raises(SystemExit):
        parse_serve([], dict(os.environ))
    assert f"{file}: [serve] has no option 'prot'; did you mean port?" in capsys.readouterr().err


def test_a_file_that_others_can_change_is_refused(configure: Configure) -> None:
    file = configure("[chat]\n")
    file.chmod(0o622)
    with pytest.raises(InvalidConfigFile, match=f"other users can change it: chmod go-w {file}"):
        read_config_file(os.environ)
    file.chmod(0o600)
    file.parent.chmod(0o777)
    with pytest.raises(InvalidConfigFile, match="other users can replace it"):
        read_config_file(os.environ)


def test_a_file_of_another_user_is_refused(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    file = configure("[chat]\n")
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InvalidConfigFile, match="belongs to another user"):
        read_config_file(os.environ)


def test_a_file_that_is_not_a_regular_one_or_too_long_is_refused(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("#" * (1024 * 1024 + 1))
    with pytest.raises(InvalidConfigFile, match="is longer than 1,048,576 bytes"):
        read_config_file(os.environ)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("LMWIRE_CONFIG", str(tmp_path / "pipe"))
    with pytest.raises(InvalidConfigFile, match="is not a regular file"):
        read_config_file(os.environ)


def test_a_key_that_others_can_read_and_a_misspelt_variable_are_reported(
    configure: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = configure('[launch]\napi-key = "k-hush"\n')
    file.chmod(0o644)
    monkeypatch.setenv("LMWIRE_LAUNCH_MODLE", "m")
    assert parse(["launch", "codex"]).api_key == "k-hush"
    warnings = capsys.readouterr().err
    assert f"other users can read the API key in {file}: chmod 600 {file}" in warnings
    assert "$LMWIRE_LAUNCH_MODLE sets no option of lmwire launch; did you mean $LMWIRE_LAUNCH_MODEL?" in warnings
    assert "hush" not in warnings


# What `lmwire config show` prints.


def test_each_value_is_shown_with_its_source(
    configure: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = configure("[serve]\nport = 8081\nmemory = '24G'\n")
    monkeypatch.setenv("LMWIRE_SERVE_PUBLIC", "yes")
    serve = shown(capsys, "serve")["serve"]
    assert serve["port"] == {"value": 8081, "source": "config", "origin": f"port in [serve] of {file}"}
    assert serve["memory"]["value"] == "24G"
    assert serve["public"] == {"value": True, "source": "environment", "origin": "$LMWIRE_SERVE_PUBLIC"}
    assert serve["max-queue"] == {"value": 256, "source": "default", "origin": "default"}
    assert serve["idle"]["value"] is None


def test_all_commands_but_those_of_hosts_are_shown_as_a_file_that_could_be_used(
    configure: Configure, tmp_path: Path
) -> None:
    configure("[serve]\nport = 8081\n[chat]\nstop = ['\"']\n")
    printed = lmwire_here("config", "show", LMWIRE_CONFIG=str(tmp_path / "lmwire.toml")).stdout
    tables = tomllib.loads(printed)
    assert tables["serve"]["port"] == 8081
    assert tables["chat"]["stop"] == ['"']
    assert {"launch", "models", "bench"} <= tables.keys()
    assert not {"worker", "mock"} & tables.keys()
    configure(printed)
    assert parse_serve([], dict(os.environ)).port == 8081
    assert parse(["chat"]).stop == ['"']


def test_an_api_key_is_not_shown(configure: Configure) -> None:
    file = configure('[serve]\napi-key = ["k-hush"]\n')
    printed = lmwire_here("config", "show", "serve", LMWIRE_CONFIG=str(file)).stdout
    assert 'api-key = "(hidden)"' in printed
    assert "hush" not in printed


def test_a_value_that_the_command_would_refuse_is_not_shown_as_if_it_held(configure: Configure) -> None:
    file = configure('[serve]\nport = "many"\n')
    result = lmwire_here("config", "show", "serve", LMWIRE_CONFIG=str(file))
    assert result.returncode == USAGE
    assert f"port in [serve] of {file}: argument --port: 'many' must be a whole number" in result.stderr


@pytest.mark.parametrize("command", ["worker", "nosuch"])
def test_a_command_without_a_table_is_refused_with_those_that_have_one(command: str) -> None:
    result = lmwire_here("config", "show", command)
    assert result.returncode == USAGE
    assert f"{command} reads no config file; these do: serve, chat, " in result.stderr
