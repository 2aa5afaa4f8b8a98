"""The command line of `lmwire serve`: what can be typed becomes settings, and anything else is named with the fix."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from lmwire_http.cli.main import parse
from lmwire_http.cli.parser import make_parser
from lmwire_http.settings import Settings
from support.process.lmwire_command import lmwire

USAGE = 64

CASES: list[tuple[list[str], str, object]] = [
    (["a", "b/c"], "models", ("a", "b/c")),
    (["a", "--preload"], "preload", True),
    (["a", "--only"], "only", True),
    (["a", "--preload"], "only", False),
    (["a", "--no-only"], "only", False),
    (["a", "--preload", "--only"], "only", True),
    (["--download"], "download", True),
    (["--allow-paths"], "allow_paths", True),
    (["a", "--any-model-name"], "any_model_name", True),
    (["--strict"], "strict", True),
    (["--usage-chunk", "choice"], "usage_chunk", "choice"),
    (["--replicas", "2"], "replicas", 2),
    (["--memory", "8G"], "memory_bytes", 8 * 2**30),
    (["--memory", "1.5 GiB"], "memory_bytes", 3 * 2**29),
    (["--memory", "1000"], "memory_bytes", 1000),
    (["--memory", "none"], "memory_bytes", "none"),
    (["--idle", "10m"], "idle_s", 600.0),
    (["--idle", "1.5"], "idle_s", 1.5),
    (["a", "--adapter", "poet"], "load_options", {"adapter_path": "poet"}),
    (["a", "--draft", "small"], "load_options", {"draft_path": "small"}),
    (["a", "--chat-template", "chatml"], "load_options", {"chat_template_name": "chatml"}),
    (["--dtype", "bfloat16"], "load_options", {"dtype": "bfloat16"}),
    (["a", "--tool-format", "mistral"], "load_options", {"tool_format": "mistral"}),
    (["a", "--template-dir", "t", "--chat-template", "chatml"], "worker_args", ("--template-dir", "t")),
    (["--context-len", "4096", "--kv-bits", "8"], "load_options", {"context_len": 4096, "kv_bits": 8}),
    (["a", "--trust-remote-code"], "load_options", {"trust_remote_code": True}),
    (
        ["--reasoning-start", "<a>", "--reasoning-end", "</a>"],
        "load_options",
        {"reasoning_start": "<a>", "reasoning_end": "</a>"},
    ),
    (["--truncate-inputs"], "truncate_inputs", True),
    (["--strict-tools"], "strict_tools", True),
    (["--reasoning-field", "both"], "reasoning_field", "both"),
    (["--reasoning", "off"], "reasoning", "off"),
    (["--reasoning", "on", "--force-reasoning"], "force_reasoning", True),
    (["--worker", "ssh -T studio 'lmwire worker'"], "worker_command", ("ssh", "-T", "studio", "lmwire worker")),
    (["--cache-dir", "c", "--cache-disk", "1G"], "worker_args", ("--cache-dir", "c", "--cache-disk-bytes", str(2**30))),
    (
        ["--media-dir", "a", "--media-dir", "b", "--media-urls"],
        "worker_args",
        ("--media-dir", "a", "--media-dir", "b", "--media-urls"),
    ),
    (["--request-templates"], "request_templates", True),
    (["--host", "::1"], "host", "::1"),
    (["--port", "0"], "port", 0),
    (["--uds", "/tmp/s"], "unix_socket", "/tmp/s"),
    (["--public"], "public", True),
    (["--cors", "http://localhost:3000", "--cors", "null"], "cors_origins", ("http://localhost:3000", "null")),
    (["--cors", "*", "--api-key", "k-1"], "cors_origins", ("*",)),
    (["--host-name", "studio.local", "--host-name", "box"], "host_names", ("studio.local", "box")),
    (["--max-body", "1M"], "max_body_bytes", 2**20),
    (["--body-timeout", "10m"], "body_timeout_s", 600.0),
    (["--image-group", "5"], "image_group", 5),
    (["--max-connections", "9"], "max_connections", 9),
    (["--max-queue", "3"], "max_requests", 3),
    (["--step-limit", "90"], "step_limit_s", 90.0),
    (["--step-limit", "0"], "step_limit_s", 0.0),
    (["--mcp-timeout", "5m"], "mcp_timeout_s", 300.0),
    (["--keep-alive", "2s"], "keep_alive_s", 2.0),
    (["--client-timeout", "5"], "client_timeout_s", 5.0),
    (["--drain", "0"], "drain_s", 0.0),
    (["--stop-at-eof"], "stop_at_eof", True),
    (["--stored", "7"], "max_stored_responses", 7),
    (["--log-format", "json"], "log_format", "json"),
    (["--no-page"], "page", False),
    (["--no-preload"], "preload", False),
    (["--otlp-endpoint", "https://host:4318/otel"], "otlp_endpoint", "https://host:4318/otel"),
    (["--log-level", "warning"], "log_level", "warning"),
    (["--max-tokens", "9"], "default_max_tokens", 9),
    (["--memory-wait", "9"], "memory_wait_s", 9.0),
    (["--generation-config", "none"], "generation_config", False),
]


FLAGS = {option for action in make_parser()._actions for option in action.option_strings if action.nargs == 0}


def refusal(capsys: pytest.CaptureFixture[str], *argv: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(SystemExit) as exit:
        parse(argv, environment or {})
    shown = capsys.readouterr()
    assert (exit.value.code, shown.out) == (USAGE, "")
    assert shown.err.endswith("See lmwire serve --help\n")
    return shown.err


@pytest.mark.parametrize(
    "options",
    [
        ("--adapter", "poet"),
        ("--draft", "small"),
        ("--chat-template", "chatml"),
        ("--tool-format", "mistral"),
        ("--trust-remote-code",),
        ("--any-model-name",),
        ("--worker", "lmwire worker"),
    ],
)
def test_options_of_the_named_models_keep_other_models_out(options: tuple[str, ...]) -> None:
    assert parse(["a", "--preload", *options], {}).only
    assert not parse(["a", "--preload"], {}).only


def test_by_default_the_models_on_this_machine_are_served_to_this_machine() -> None:
    assert parse([], {}) == Settings()
    assert Settings().host == "127.0.0.1"


@pytest.mark.parametrize(("argv", "field", "value"), CASES)
def test_every_option_becomes_a_setting(argv: Sequence[str], field: str, value: object) -> None:
    assert getattr(parse(argv, {}), field) == value


@pytest.mark.parametrize(("argv", "field", "value"), CASES)
def test_every_option_can_come_from_the_environment(argv: Sequence[str], field: str, value: object) -> None:
    environment: dict[str, str] = {}
    option = "MODEL"
    for word in argv:
        if word.startswith("--"):
            option = word.removeprefix("--no-").lstrip("-").replace("-", "_").upper()
            text = str(int(not word.startswith("--no-"))) if word in FLAGS else ""
            environment.setdefault(f"LMWIRE_SERVE_{option}", text)
        else:
            variable = f"LMWIRE_SERVE_{option}"
            environment[variable] = f"{environment.get(variable, '')} {word}".strip()
    assert getattr(parse([], environment), field) == value


def test_every_setting_can_be_typed() -> None:
    assert {field.name for field in fields(Settings)} == {field for _, field, _ in CASES} | {
        "api_keys",
        "mcp_servers",
        "warnings",
    }


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--image-group", "65"], "--image-group: '65' must be a whole number from 1 to 64"),
        (["--port", "x"], "argument --port: 'x' must be a whole number from 0 to 65535"),
        (["--port", "65536"], "from 0 to 65535"),
        (["--replicas", "0"], "argument --replicas: '0' must be a whole number, 1 or more"),
        (["--max-queue", "-1"], "argument --max-queue: '-1' must be"),
        (
            ["--memory", "8X"],
            "argument --memory: '8X' is not a size: write bytes, or a number with K, M, G or T, such as 8G",
        ),
        (["--memory", "0"], "must be 1 byte or more"),
        (["--max-body", "much"], "argument --max-body: 'much' is not a size"),
        (
            ["--idle", "soon"],
            "argument --idle: 'soon' is not a time: write seconds, or a number with s, m or h, such as 10m",
        ),
        (["--keep-alive", "0"], "argument --keep-alive: must be more than 0 seconds"),
        (["--drain", "-1"], "argument --drain: "),
        (["--kv-bits", "5"], "argument --kv-bits: invalid choice: 5"),
        (["--log-format", "xml"], "argument --log-format: invalid choice: 'xml'"),
        (["--cors", "localhost"], "argument --cors: 'localhost' is not an origin: write scheme://host:port"),
        (["--cors", "*.example"], "argument --cors: '*.example' is not an origin"),
        (["--host-name", "studio.local:8080"], "argument --host-name: 'studio.local:8080' is not a host name"),
        (["--body-timeout", "0"], "argument --body-timeout: must be more than 0 seconds"),
        (["--cors", "http://a/b"], "without a path"),
        (["--worker", "'"], "argument --worker: "),
        (["--worker", " "], "argument --worker: is empty"),
        ([""], "argument MODEL: is empty"),
        (["a", "--allow-paths"], "--allow-paths: only the models that are named are served"),
        (["a", "b", "--any-model-name"], "--any-model-name: any name stands for one model"),
        (["--preload"], "--preload: name the models to load"),
        (["a", "--no-only", "--adapter", "poet"], "--no-only: --adapter holds for the named models alone"),
        (["--adapter", "poet"], "--adapter: it belongs to one model"),
        (["a", "b", "--draft", "small"], "--draft: it belongs to one model"),
        (["--chat-template", "chatml"], "--chat-template: it belongs to one model"),
        (["a", "--template-dir", "t"], "--template-dir: name the template to use with --chat-template"),
        (["--trust-remote-code"], "--trust-remote-code: name the models whose code may run"),
        (["--uds", "/tmp/s", "--port", "1"], "--uds: it replaces --host and --port"),
        (["--colour"], "unrecognized arguments: --colour"),
        (["--prel"], "unrecognized arguments: --prel; did you mean --preload?"),
        (["--api-key", "two words"], "--api-key is not an API key: a key is one or more printable ASCII characters"),
        (["--api-key", ""], "--api-key is not an API key"),
        (["--api-key-file", "/nowhere"], "--api-key-file: cannot read /nowhere"),
    ],
)
def test_an_invalid_option_is_named_with_the_fix(
    capsys: pytest.CaptureFixture[str], argv: Sequence[str], words: str
) -> None:
    assert words in refusal(capsys, *argv)


def test_the_error_for_an_invalid_key_does_not_show_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "hush" not in refusal(capsys, "--api-key", "hush hush")
    assert "hush" not in refusal(capsys, environment={"LMWIRE_API_KEY": "hush hush"})


def test_keys_come_from_the_command_line_a_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\n\nk-ada\n  k-alan \nk-ada\n")
    argv = ["--api-key", "k-1", "--api-key", "k-2", "--api-key-file", str(file)]
    assert parse(argv, {"LMWIRE_API_KEY": "k-3"}).api_keys == ("k-1", "k-2", "k-ada", "k-alan", "k-3")


def test_a_file_of_keys_without_one_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# none yet\n")
    assert "has no key: write one a line" in refusal(capsys, "--api-key-file", str(file))
    file.write_text("k-1\nk 2\n")
    assert f"line 2 of {file} is not an API key" in refusal(capsys, "--api-key-file", str(file))


@pytest.mark.slow
def test_it_explains_itself_with_examples() -> None:
    shown = lmwire("serve", "--help")
    assert shown.returncode == 0
    assert "examples:\n  lmwire serve " in shown.stdout
    assert "--api-key-file keys.txt" in shown.stdout


@pytest.mark.slow
def test_wrong_usage_ends_the_program_with_64() -> None:
    result = lmwire("serve", "--port", "x")
    assert (result.returncode, result.stdout) == (USAGE, "")
    assert "Traceback" not in result.stderr
