"""The mock worker's replies, without a model library."""

import sys

import pytest

from lmwire_worker.mock.plan import plan
from support.process.mock_host import GENERATE, HELLO, LOAD, mock, run_worker
from support.process.worker_thread import run_on_thread

GUARD = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        allowed = {"msgspec", "lmwire_worker", "lmwire_protocol"} | set(sys.stdlib_module_names)
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
from lmwire_worker.__main__ import main
main(sys.argv[1:])
"""
CHAT = {"id": "c", "cmd": "chat", "messages": [{"role": "user", "content": "to be or"}]}


@pytest.mark.slow
def test_the_mock_imports_msgspec_and_no_other_library() -> None:
    guarded = [sys.executable, "-c", GUARD, "--mock", "--text", "a stop", "--fault", "unknown-fields"]
    output = run_worker(guarded, HELLO, LOAD, {**GENERATE, "stop": ["stop"]}, CHAT)
    assert output.returncode == 0, output.stderr
    assert output.text() == "a "


@pytest.mark.slow
def test_the_guard_of_the_test_above_guards() -> None:
    refused = run_worker([sys.executable, "-c", GUARD.replace("main(", "import numpy #")])
    assert b"ModuleNotFoundError: numpy" in refused.stderr


@pytest.mark.slow
def test_the_mock_imports_modules_of_options_only_for_these_options() -> None:
    started = run_worker([sys.executable, "-X", "importtime", *mock()[1:]])
    assert b"lmwire_worker.mock.runner" in started.stderr
    for module in (b"argparse", b"lmwire_worker.mock.faults", b"lmwire_worker.generation"):
        assert module not in started.stderr


def test_a_prompt_is_echoed_word_by_word() -> None:
    output = run_on_thread(mock(), LOAD, GENERATE, CHAT)
    assert [event["token"] for event in output.of("g") if event["event"] == "token"] == ["a ", "b ", "c ", "d ", "e"]
    assert output.text("c") == "to be or"
    assert output.terminals("g")[0]["finish_reason"] == "stop"


def test_an_echo_goes_on_up_to_max_tokens() -> None:
    output = run_on_thread(mock(), LOAD, {**GENERATE, "prompt": "a b ", "max_tokens": 5})
    assert output.text() == "a b a b a "
    assert output.terminals("g")[0]["finish_reason"] == "length"


def test_the_answer_can_be_the_same_for_every_request() -> None:
    output = run_on_thread(mock("--text", "Hello, world!"), LOAD, GENERATE, CHAT)
    assert output.text("g") == output.text("c") == "Hello, world!"
    assert output.terminals("g")[0]["usage"] == {"prompt_tokens": 5, "cached_tokens": 0, "completion_tokens": 2}


def test_max_tokens_cuts_a_given_answer() -> None:
    output = run_on_thread(mock("--text", "one two three"), LOAD, {**GENERATE, "max_tokens": 2})
    assert output.text() == "one two "
    assert output.terminals("g")[0]["finish_reason"] == "length"


def test_tokens_take_the_time_that_they_are_given() -> None:
    output = run_on_thread(mock("--token-ms", "20"), LOAD, GENERATE)
    assert output.text() == "a b c d e"
    assert output.terminals("g")[0]["timings"]["total_ms"] >= 5 * 20


@pytest.mark.parametrize("stop", ["c", "c d", "b c d "])
def test_a_stop_string_ends_an_answer_and_is_never_shown(stop: str) -> None:
    output = run_on_thread(mock(), LOAD, {**GENERATE, "stop": [stop, "never"]})
    assert output.text() == "a b c d e".partition(stop)[0]
    [terminal] = output.terminals("g")
    assert (terminal["finish_reason"], terminal["stop"]) == ("stop", stop)


def test_text_that_may_become_a_stop_string_comes_with_the_end() -> None:
    assert run_on_thread(mock(), LOAD, {**GENERATE, "stop": ["e f"]}).text() == "a b c d e"


def test_another_model_is_not_found() -> None:
    [refused] = run_on_thread(mock(), {**LOAD, "path": "owner/name"}).terminals("l")
    assert (refused["code"], refused["field"], refused["loaded"]) == ("model_not_found", "path", False)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--loud"], "--loud"),
        (["--token-ms", "-1"], "--token-ms"),
        (["--fault", "sulk"], "'sulk'"),
        (["--fault", "crash-start:when=now"], "'when'"),
        (["--fault", "crash-start:signal=HUP"], "'HUP'"),
        (["--fault", "burst:tokens=many"], "'many'"),
        (["--scenario", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_usage_is_named_on_stderr_and_exits_with_64(
    options: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        plan(options)
    output = capsys.readouterr()
    assert (exit.value.code, output.out) == (64, "")
    assert named in output.err


def test_help_shows_examples_and_says_where_the_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        plan(["--help"])
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert "--list-faults" in shown
