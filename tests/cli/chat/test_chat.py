"""`lmwire chat` in a pipeline: one answer, and nothing else on stdout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.process.lmwire_command import FAKE_WORKER, MOCK_WORKER, lmwire
from support.process.worker_process import SECONDS

pytestmark = pytest.mark.slow

MOCK = ("chat", "mock", "--worker", MOCK_WORKER)
ECHO = ("chat", "echo", "--worker", f"{FAKE_WORKER} ServesAll", "-p", "Hi")
FAILED, USAGE = 1, 64


def test_a_prompt_gets_one_answer_as_plain_text() -> None:
    result = lmwire(*MOCK, "-p", "*one* two")
    assert (result.returncode, result.stdout, result.stderr) == (0, "*one* two\n", "")


UNNEEDED = {
    *("asyncio", "concurrent.futures", "dataclasses", "inspect", "json", "logging", "shutil", "ssl", "tempfile"),
    *("typing_extensions", "lmwire.cli.chat.conversation"),
}
"""Modules that a single answer needs not."""

STARTING = """
import gc
import sys
from lmwire import cli
from lmwire.transport import child

def spawn(command):
    print(*sorted({"asyncio", "lmwire.cli.chat.chat_session", "msgspec"} & sys.modules.keys()), end=".")
    print(gc.get_freeze_count() > 0, end=".")
    raise FileNotFoundError("no such worker")

child.spawn_process = spawn
sys.argv = ["lmwire", "chat", "-p", "hi"]
sys.exit(cli.main())
"""


def test_the_worker_starts_before_the_rest_of_the_client_is_imported() -> None:
    """Then both take their time at once."""
    command = [sys.executable, "-c", STARTING]
    result = subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS
    )
    assert result.stdout.startswith("."), "nothing of it is there at the start"
    assert result.stdout.startswith(".True."), "collections leave out what is"
    assert "no such worker" in result.stderr and result.returncode == FAILED


ANSWERING = f"""
import sys
from lmwire import cli

sys.argv = ["lmwire", *{[*MOCK, "-p", "hi"]}]
cli.main()
print(*sorted({UNNEEDED} & sys.modules.keys()))
"""


def test_a_single_answer_imports_little() -> None:
    """The event loop alone would take a third of the client's time."""
    command = [sys.executable, "-P", "-c", ANSWERING]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS
    )
    assert done.stdout == "hi\n\n", done.stderr


def test_stdin_is_the_prompt() -> None:
    assert lmwire(*MOCK, stdin="over\na pipe\n").stdout == "over\na pipe\n"


def test_stdin_follows_the_prompt_where_both_are_given() -> None:
    assert lmwire(*MOCK, "-p", "Say this:", stdin="as it is").stdout == "Say this:\n\nas it is\n"


def test_the_model_can_come_from_the_environment() -> None:
    assert lmwire("chat", "--worker", MOCK_WORKER, "-p", "hello", LMWIRE_MODEL="mock").stdout == "hello\n"


@pytest.mark.nightly  # the next test shows it of every option
def test_options_reach_the_request() -> None:
    assert lmwire(*MOCK, "-p", "one two three ", "--max-tokens", "2").stdout == "one two \n"


def test_every_option_of_an_answer_reaches_the_request(tmp_path: Path) -> None:
    schema, tools = {"type": "object"}, [{"type": "function", "function": {"name": "look"}}]
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    given = {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "xtc_probability": 0.5,
        "xtc_threshold": 0.2,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.1,
        "frequency_penalty": -0.2,
        "seed": 7,
        "truncate": "middle",
        "reasoning": "on",
        "reasoning_effort": "low",
        "reasoning_budget": 100,
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    files = ["--schema", str(tmp_path / "schema.json"), "--tools", str(tmp_path / "tools.json")]
    request = json.loads(lmwire(*ECHO, *options, *files, "--stop", ".", "--stop", "!", "--system", "Be brief.").stdout)
    assert request == {
        "id": request["id"],
        "cmd": "chat",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "format": {"type": "json_schema", "schema": schema},
        "tools": tools,
        "stop": [".", "!"],
        **given,
    }


def test_images_are_sent_with_the_prompt(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        (tmp_path / name).write_text(name)
    options = [option for name in ("one.png", "two.png") for option in ("--image", str(tmp_path / name))]
    request = json.loads(lmwire(*ECHO, *options).stdout)
    images = [{"type": "image", "media": {"data": data}} for data in ("b25lLnBuZw==", "dHdvLnBuZw==")]
    assert request["messages"] == [{"role": "user", "content": [*images, {"type": "text", "text": "Hi"}]}]


def test_a_missing_image_is_named(tmp_path: Path) -> None:
    result = lmwire(*ECHO, "--image", str(tmp_path / "none.png"))
    assert (result.returncode, result.stdout) == (USAGE, "")
    assert f"--image: {tmp_path / 'none.png'}: No such file" in result.stderr


def test_options_reach_the_load() -> None:
    options = ["--context-len", "5", "--force", "--truncate", "left", "--max-tokens", "2"]
    assert lmwire(*MOCK, *options, "-p", "a b c d e f ").stdout == "d e \n"


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    for path in (tmp_path / "broken.json", tmp_path / "missing.json"):
        result = lmwire(*ECHO, "--schema", str(path))
        assert (result.returncode, result.stdout) == (USAGE, "")
        assert f"--schema: {path}: " in result.stderr


def test_without_a_model_it_uses_the_built_in_one() -> None:
    result = lmwire("chat", "-p", "Who are you?")
    assert (result.returncode, result.stderr) == (0, "")
    assert "the tiny model that ships with lmwire" in result.stdout


def test_an_empty_prompt_is_an_error() -> None:
    result = lmwire(*MOCK, stdin=" \n")
    assert result.returncode == USAGE
    assert "stdin was empty" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["chat", "nowhere", "--worker", MOCK_WORKER], "`lmwire models` lists what is on this machine"),
        ([*MOCK, "--temperature", "-1"], "`temperature`"),
        *(
            pytest.param([*MOCK, option, value], field, marks=pytest.mark.nightly)  # as the temperature
            for option, value, field in (
                ("--adapter", "/adapters/poet", "adapter_path"),
                ("--draft", "/models/small", "draft_path"),
                ("--kv-bits", "8", "kv_bits"),
            )
        ),
        (["chat", "mock", "--worker", "no-such-program"], "no-such-program"),
        (["chat", "mock", "--worker", "echo"], "does not answer as a worker"),
    ],
)
def test_a_failure_is_a_sentence_on_stderr(arguments: list[str], sentence: str) -> None:
    result = lmwire(*arguments, "-p", "hello")
    assert (result.returncode, result.stdout) == (FAILED, "")
    assert result.stderr.startswith("lmwire: ")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
