"""The session of the older bridge's hosts: requests without ids, answered one at a time and in order."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from random_model import write_model
from support.process.bridge_host import BRIDGE, Bridge
from support.process.worker_process import SECONDS
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    with Bridge() as mock:
        yield mock


LOADED = {"ok": True, "model_type": "mock", "vocab_size": 1048576}


def test_a_piped_script_is_answered_in_the_bridges_shapes_and_in_order() -> None:
    script = [
        {"cmd": "load", "path": "mock"},
        {"cmd": "generate", "prompt": "a b", "max_tokens": 3},
        {"cmd": "chat", "messages": [{"role": "user", "content": "hi there"}], "max_tokens": 2},
        {"cmd": "info"},
        {"cmd": "dance"},
        {"cmd": "quit"},
    ]
    run = subprocess.run(
        [sys.executable, str(BRIDGE), "--mock"],
        input="".join(json.dumps(line) + "\n" for line in script),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0
    *lines, error = [json.loads(line) for line in run.stdout.splitlines()]
    assert lines == [
        LOADED,
        {"token": "a ", "token_id": 0},
        {"token": "b", "token_id": 1},
        {"token": "a ", "token_id": 0},
        {"done": True, "tokens_generated": 3},
        {"token": "hi ", "token_id": 0},
        {"token": "there", "token_id": 1},
        {"done": True, "tokens_generated": 2},
        {"model_type": "mock", "vocab_size": 1048576, "layers": 0, "hidden_size": 0},
    ]
    assert list(error) == ["error"]
    assert error["error"].startswith("unknown command: dance; there are load, generate, chat, info, inspect,")


def test_an_interactive_cancel_ends_the_running_generation_and_gets_no_reply(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock:step_ms=1"})
    assert bridge.read() == LOADED
    bridge.send({"cmd": "generate", "prompt": "a b", "max_tokens": 100_000})
    seen = 1
    assert bridge.read() == {"token": "a ", "token_id": 0}
    bridge.send({"cmd": "cancel"})
    while "token" in (line := bridge.read()):
        seen += 1
    assert line == {"done": True, "tokens_generated": seen}
    bridge.send({"cmd": "generate", "prompt": "still here"})
    assert bridge.read() == {"token": "still ", "token_id": 0}


def test_a_cancel_ends_all_generations_that_were_read_before_it_in_order(bridge: Bridge) -> None:
    long = {"cmd": "generate", "prompt": "a b", "max_tokens": 100_000}
    bridge.send({"cmd": "load", "path": "mock:step_ms=1"}, long)
    assert bridge.read() == LOADED
    assert "token" in bridge.read()
    bridge.send({"cmd": "nonsense"}, long, {"cmd": "info"}, {"cmd": "cancel"}, {"cmd": "info"}, {"cmd": "quit"})
    lines = [line for line in bridge.rest() if "token" not in line]
    first, nonsense, second, info, after = lines
    assert first["done"] is True
    assert "nonsense" in nonsense["error"]
    assert second == {"done": True, "tokens_generated": 0}
    assert info == after
    assert after["model_type"] == "mock"


def test_a_cancel_ends_no_load(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock:load_steps=100,step_ms=2"}, {"cmd": "cancel"}, {"cmd": "quit"})
    assert bridge.rest() == [LOADED]


def test_max_tokens_is_256_unless_given(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock"}, {"cmd": "generate", "prompt": "a b c"})
    assert bridge.rest()[-1] == {"done": True, "tokens_generated": 256}


ODD_SETTINGS: list[dict[str, Any]] = [
    {"temperature": -3},
    {"temperature": 1000},
    {"top_p": 0},
    {"top_p": -1},
    {"top_p": 7},
    {"top_k": -5},
    {"top_k": 2.0},
    {"min_p": 2},
    {"repeat_penalty": 0},
    {"repeat_penalty": 1.0},
    {"repeat_penalty": 99},
    {"max_tokens": -2},
    {"voice": "loud", "top_p": None},
]


def test_out_of_range_values_are_clamped_and_unknown_fields_ignored(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock"})
    bridge.send(*({"cmd": "generate", "prompt": "a", "max_tokens": 1, **settings} for settings in ODD_SETTINGS))
    loaded, *lines = bridge.rest()
    assert loaded == LOADED
    ends = [line for line in lines if "token" not in line]
    for settings, end in zip(ODD_SETTINGS, ends, strict=True):
        assert end.get("done") is True, settings


def test_clamped_and_ignored_fields_are_reported_on_stderr(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock"}, {"cmd": "generate", "prompt": "a", "min_p": 9, "voice": "loud"})
    _, err = bridge.process.communicate(timeout=SECONDS)
    assert "min_p: 9" in err
    assert "'voice'" in err


BAD = [
    "nonsense",
    "[1]",
    '{"cmd":5}',
    "{}",
    '{"cmd":"chat","messages":"hi"}',
    '{"cmd":"chat","messages":["hi"]}',
    '{"cmd":"chat","messages":[{"role":5,"content":"hi"}]}',
    '{"cmd":"chat","messages":[{"role":"user","content":5}]}',
    '{"id":"x","cmd":"info"}',
    '{"cmd":"generate","prompt":5}',
]


def test_a_bad_request_gets_an_error_in_its_turn(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock"})
    for bad in BAD:
        bridge.write(bad + "\n")
        bridge.send({"cmd": "generate", "prompt": "a", "max_tokens": 1})
    loaded, *lines = bridge.rest()
    assert loaded == LOADED
    assert len(lines) == 3 * len(BAD)
    for bad, error, *rest in zip(BAD, lines[::3], lines[1::3], lines[2::3], strict=True):
        assert list(error) == ["error"], bad
        assert rest == [{"token": "a", "token_id": 0}, {"done": True, "tokens_generated": 1}], bad


def test_without_a_model_a_generate_gets_an_error(bridge: Bridge) -> None:
    bridge.send({"cmd": "generate", "prompt": "a"})
    assert bridge.rest()[0]["error"].startswith("generate: no model loaded")


def test_the_end_of_stdin_finishes_what_was_accepted_and_exits_0(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock:step_ms=1"}, {"cmd": "generate", "prompt": "a b", "max_tokens": 100})
    assert bridge.rest()[-1] == {"done": True, "tokens_generated": 100}
    assert bridge.process.returncode == 0


def test_a_real_model_answers_a_bridge_as_it_answers_version_1(tmp_path: Path) -> None:
    model = str(write_model(tmp_path / "model", end_scale=0))
    settings = {"max_tokens": 40, "temperature": 0, "top_p": 0, "top_k": 0, "min_p": 0}
    messages = [{"role": "user", "content": "hello"}]
    with RealOnThread() as worker:
        loaded = worker.load(model)
        worker.call({"id": "g", "cmd": "generate", "prompt": "hello", "max_tokens": 40})
        worker.call({"id": "c", "cmd": "chat", "messages": messages, "max_tokens": 40, "repetition_penalty": 1.5})
    bridge = Bridge(sys.executable, str(BRIDGE))
    bridge.send(
        {"cmd": "load", "path": model},
        {"cmd": "generate", "prompt": "hello", **settings},
        {"cmd": "chat", "messages": messages, **settings, "repeat_penalty": 1.5},
        {"cmd": "info"},
        {"cmd": "quit"},
    )
    first, *rest, info = bridge.rest()
    tokens = Tokenizer.from_file(f"{model}/tokenizer.json").get_vocab_size(with_added_tokens=False)
    assert tokens < loaded["vocab_size"]
    shared = {"model_type": loaded["model_type"], "vocab_size": tokens}
    assert first == {"ok": True, **shared}
    assert info == {**shared, "layers": loaded["layers"], "hidden_size": loaded["hidden_size"]}
    for id, lines in (("g", rest[:41]), ("c", rest[41:])):
        *tokens, done = lines
        assert done == {"done": True, "tokens_generated": 40}
        assert [line["token_id"] for line in tokens] == worker.token_ids(id)
        assert "".join(line["token"] for line in tokens) == worker.text(id)
