"""Options of `lmwire serve` from environment variables and from a file of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmwire_http.cli.main import parse
from lmwire_http.cli.parser import make_parser
from support.http.http_server import MOCK, served_process
from support.http.raw_http import CHAT, asked, chat_body
from support.process.lmwire_command import lmwire

USAGE = 64


def refusal(capsys: pytest.CaptureFixture[str], *argv: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as exit:
        parse(argv, environment)
    assert exit.value.code == USAGE
    return capsys.readouterr().err


def written(folder: Path, text: str, mode: int = 0o600) -> str:
    file = folder / "serve.env"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


@pytest.fixture
def key_server_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The log of a server whose key comes from a file that others can read, with a worker that logs its environment."""
    monkeypatch.setenv("LMWIRE_SERVE_ENV_FILE", written(tmp_path, "LMWIRE_SERVE_API_KEY=k-hush\n", 0o644))
    print_environment = f"sh -c 'env >&2; exec {MOCK}'"
    with served_process("--worker", print_environment) as server:
        assert asked(server.url, "POST", CHAT, chat_body("hello")).status == 401
        assert asked(server.url, "POST", CHAT, chat_body("hello"), authorization="Bearer k-hush").status == 200
        server.wait_for_line("LMWIRE_SERVE_ENV_FILE=")
    yield "".join(server.log)


@pytest.mark.slow
def test_a_server_takes_its_options_from_variables_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(
        tmp_path,
        f"# for tests\nexport LMWIRE_SERVE_MODEL='mock other'\nLMWIRE_SERVE_WORKER={MOCK}\nLMWIRE_SERVE_MAX_BODY=7M\n",
    )
    monkeypatch.setenv("LMWIRE_SERVE_MAX_BODY", "100")
    with served_process("--env-file", file) as server:
        listed = json.loads(asked(server.url, "GET", "/v1/models").body)
        assert {model["id"] for model in listed["data"]} == {"mock", "other"}
        assert asked(server.url, "POST", CHAT, chat_body("hello " * 100, model="mock")).status == 413


def test_model_path_of_a_file_names_the_model(tmp_path: Path) -> None:
    file = written(tmp_path, "MODEL_PATH='/my models/a'\n")
    assert parse(["--env-file", file], {}).models == ("/my models/a",)
    assert parse(["--env-file", file, "b"], {}).models == ("b",)
    assert parse(["--env-file", file], {"LMWIRE_SERVE_MODEL": "c"}).models == ("c",)
    assert parse([], {"MODEL_PATH": "/my models/a"}).models == ()


@pytest.mark.slow
def test_a_file_in_the_current_directory_is_read_only_if_it_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LMWIRE_SERVE_API_KEY=k-1\n")
    for options, status in (((), 200), (("--env-file", ".env"), 401)):
        with served_process("--worker", MOCK, *options, directory=tmp_path) as server:
            assert asked(server.url, "GET", "/v1/models").status == status


@pytest.mark.slow
def test_workers_do_not_inherit_a_key_and_a_file_that_others_can_read_is_reported(key_server_log: str) -> None:
    assert "LMWIRE_SERVE_API_KEY" not in key_server_log
    assert "--env-file: other users can read or change" in key_server_log


@pytest.mark.slow
def test_a_misspelt_variable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMWIRE_SERVE_MAX_QUEU", "3")
    with served_process("--worker", MOCK) as server:
        server.wait_for_line(r"\$LMWIRE_SERVE_MAX_QUEU sets no option .*did you mean \$LMWIRE_SERVE_MAX_QUEUE\?")


@pytest.mark.slow
def test_the_help_names_the_prefix() -> None:
    assert "LMWIRE_SERVE_MAX_QUEUE sets --max-queue" in lmwire("serve", "--help").stdout


def test_the_command_line_replaces_a_variable_also_a_list() -> None:
    environment = {"LMWIRE_SERVE_PORT": "1", "LMWIRE_SERVE_CORS": "http://a http://b", "LMWIRE_SERVE_MODEL": "a"}
    settings = parse(["--port", "2", "--cors", "null", "b"], environment)
    assert (settings.port, settings.cors_origins, settings.models) == (2, ("null",), ("b",))


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    environment = {"LMWIRE_SERVE_PORT": "1", "LMWIRE_SERVE_ENV_FILE": written(tmp_path, "LMWIRE_SERVE_PORT=2\nA=b\n")}
    assert parse([], environment).port == 1
    assert environment["A"] == "b"


def test_an_empty_variable_counts_as_absent() -> None:
    assert parse([], {"LMWIRE_SERVE_PORT": "", "LMWIRE_SERVE_PUBLIC": " "}) == parse([], {})


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("No", False)])
def test_a_flag_is_a_word_for_true_or_false(text: str, value: bool) -> None:
    assert parse([], {"LMWIRE_SERVE_PUBLIC": text}).public == value


def test_values_with_spaces_are_quoted_as_in_a_shell() -> None:
    settings = parse([], {"LMWIRE_SERVE_MODEL": "a './my model'", "LMWIRE_SERVE_MEDIA_DIR": "'/my images' /b"})
    assert settings.models == ("a", "./my model")
    assert settings.worker_args == ("--media-dir", "/my images", "--media-dir", "/b")


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"LMWIRE_SERVE_PORT": "tcp://10.0.0.1:80"}, "from 0 to 65535 (--port is set by $LMWIRE_SERVE_PORT)"),
        ({"LMWIRE_SERVE_PUBLIC": "maybe"}, "'maybe' is not 1 or 0 (true or false"),
        ({"LMWIRE_SERVE_KV_BITS": "5"}, "invalid choice: 5"),
        ({"LMWIRE_SERVE_CORS": "'"}, "argument --cors: No closing quotation"),
        ({"LMWIRE_SERVE_PRELOAD": "1"}, "name the models to load"),
        ({"LMWIRE_SERVE_API_KEY": "'hush hush'"}, "--api-key is not an API key"),
        ({"LMWIRE_SERVE_API_KEY_FILE": "/nowhere"}, "cannot read /nowhere"),
        ({"LMWIRE_SERVE_ENV_FILE": "/nowhere"}, "--env-file: cannot read /nowhere"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_its_variable(
    capsys: pytest.CaptureFixture[str], environment: dict[str, str], words: str
) -> None:
    shown = refusal(capsys, **environment)
    assert words in shown
    assert f"${next(iter(environment))}" in shown
    assert "hush hush" not in shown


def test_an_option_of_the_command_line_that_contradicts_a_variable_is_refused_with_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = refusal(capsys, "--uds", "/tmp/s", LMWIRE_SERVE_HOST="::1")
    assert "(--host is set by $LMWIRE_SERVE_HOST)" in shown


def test_a_line_of_the_file_that_is_not_an_assignment_is_refused_without_its_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = written(tmp_path, "A=b\nhush hush\n")
    assert f"line 2 of {file} is not NAME=value" in (shown := refusal(capsys, "--env-file", file))
    assert "hush" not in shown


def test_variables_have_names_of_their_own() -> None:
    parser = make_parser()
    variables = [parser.variable_of(action) for action in parser.settable()]
    assert len(set(variables)) == len(variables)
