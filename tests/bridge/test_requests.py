"""Bridge sessions take what the older bridge took, and answer in its words."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmwire_protocol import extras
from random_model import write_model
from support.models.chat_templates import GEMMA3, QWEN3
from support.models.templated_model import write_templated_model
from support.process.bridge_host import BRIDGE, Bridge
from support.process.worker_process import SECONDS
from support.process.worker_thread import RealOnThread

pytestmark = pytest.mark.slow

TokenIds = Callable[[Path, str], list[int]]


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    with Bridge() as mock:
        yield mock


def talk(model: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a real worker after those of the load."""
    with Bridge(sys.executable, str(BRIDGE)) as bridge:
        bridge.send({"cmd": "load", "path": str(model)}, *requests)
        loaded, *lines = bridge.rest()
    assert loaded["ok"] is True
    return lines


def chat(*messages: Any, **settings: Any) -> dict[str, Any]:
    return {"cmd": "chat", "messages": list(messages), "max_tokens": 8, **settings}


@pytest.fixture(scope="module")
def wire_ids() -> Iterator[TokenIds]:
    """Return a function that returns the token ids of a prompt's greedy answer in version 1."""
    with RealOnThread() as worker:

        def wire_ids(model: Path, prompt: str) -> list[int]:
            id = f"{len(worker.events)}"
            worker.load(str(model), id=f"load {id}")
            worker.call({"id": id, "cmd": "generate", "prompt": prompt, "max_tokens": 8})
            return worker.token_ids(id)

        yield wire_ids


def ids_of(lines: list[dict[str, Any]]) -> list[int]:
    return [line["token_id"] for line in lines if "token" in line]


def test_unknown_keys_of_messages_are_ignored(bridge: Bridge) -> None:
    message = {"role": "user", "content": "hi there", "mood": None, "time": 3}
    part = {"type": "text", "text": "hi there", "cache_control": {}}
    bridge.send({"cmd": "load", "path": "mock"}, chat(message, max_tokens=2))
    bridge.send(chat({"role": "user", "content": [part]}, max_tokens=2))
    out, err = bridge.process.communicate(timeout=SECONDS)
    words = ['{"token":"hi ","token_id":0}', '{"token":"there","token_id":1}', '{"done":true,"tokens_generated":2}']
    assert out.splitlines()[1:] == words * 2
    for ignored in ("messages[0].time", "messages[0].content[0].cache_control"):
        assert ignored in err


def test_a_role_that_the_template_writes_reaches_the_model_as_it_is(tmp_path: Path, wire_ids: TokenIds) -> None:
    model = write_model(tmp_path / "model", end_scale=0)
    found = talk(model, chat({"role": "narrator", "content": "Night fell."}))
    prompt = "<|im_start|>narrator\nNight fell.<|im_end|>\n<|im_start|>assistant\n"
    assert ids_of(found) == wire_ids(model, prompt)


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        (QWEN3, "<|im_start|>user\nnarrator: Night fell.<|im_end|>\n<|im_start|>assistant\n"),
        (GEMMA3, "<start_of_turn>user\nnarrator: Night fell.<end_of_turn>\n<start_of_turn>model\n"),
        (None, "narrator: Night fell.\nassistant:"),
    ],
)
def test_any_other_role_reaches_it_in_the_users_text(
    tmp_path: Path, template: str | None, prompt: str, wire_ids: TokenIds
) -> None:
    model = write_templated_model(tmp_path / "model", template)
    found = ids_of(talk(model, chat({"role": "narrator", "content": "Night fell."})))
    assert found == wire_ids(model, prompt)


def test_the_name_of_a_speaker_reaches_the_template(tmp_path: Path, wire_ids: TokenIds) -> None:
    template = "{% for m in messages %}{{ m.name or m.role }}> {{ m.content }}\n{% endfor %}assistant> "
    model = write_templated_model(tmp_path / "model", template)
    found = talk(model, chat({"role": "user", "name": "ada", "content": "hi"}, {"role": "narrator", "content": "Hm."}))
    assert ids_of(found) == wire_ids(model, "ada> hi\nnarrator> Hm.\nassistant> ")


def test_a_tools_message_needs_no_id_and_a_message_no_role_and_no_content(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", end_scale=0)
    called = {"role": "assistant", "tool_calls": [{"id": "1", "name": "look", "arguments": {}}]}
    lines = talk(model, chat({"content": "Look!"}, called, {"role": "tool", "content": "A cat."}, {"role": "user"}))
    assert lines[-1] == {"done": True, "tokens_generated": 8}


def test_absent_messages_and_prompts_are_empty(tmp_path: Path, wire_ids: TokenIds) -> None:
    model = write_model(tmp_path / "model", end_scale=0)
    *absent, _ = talk(model, {"cmd": "chat", "max_tokens": 8})
    *empty, generated = talk(model, chat(), {"cmd": "generate", "max_tokens": 1})
    assert ids_of(absent) == ids_of(empty) == wire_ids(model, "<|im_start|>assistant\n")
    # This model has no beginning-of-text token, so that an empty prompt has no tokens.
    assert generated["error"].startswith("generate: prompt: comes to no tokens")


def test_max_tokens_minus_one_is_no_limit(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", end_scale=0, max_position_embeddings=400)
    *tokens, done = talk(model, {"cmd": "generate", "prompt": "ka lo", "max_tokens": -1})
    assert done["tokens_generated"] == len(tokens)
    assert len(tokens) > 300


def test_each_counted_token_has_one_line_the_end_of_turn_too(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", end_scale=3)
    with RealOnThread() as worker:
        worker.load(str(model))
        done = worker.call({"id": "g", "cmd": "generate", "prompt": "hello", "max_tokens": 200})
        assert done["finish_reason"] == "stop"
        token_ids, text = worker.token_ids("g"), worker.text("g")
        assert done["usage"]["completion_tokens"] == len(token_ids) + 1
    *tokens, last = talk(model, {"cmd": "generate", "prompt": "hello", "max_tokens": 200})
    assert last == {"done": True, "tokens_generated": len(tokens)}
    assert [line["token_id"] for line in tokens[:-1]] == token_ids
    assert tokens[-1]["token_id"] not in token_ids
    assert "".join(line["token"] for line in tokens) == text


def test_text_that_is_incomplete_at_the_end_is_in_the_last_tokens_line(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", end_scale=0, printable=False)
    limits = range(1, 13)
    lines = talk(model, *({"cmd": "generate", "prompt": "hello", "max_tokens": most} for most in limits))
    for most in limits:
        (*tokens, done), lines = lines[: most + 1], lines[most + 1 :]
        assert all("token" in line for line in tokens)
        assert len(tokens) == most == done["tokens_generated"]


def test_errors_begin_with_the_command(bridge: Bridge) -> None:
    bridge.send(*({"cmd": name} for name in ("info", "chat", "generate", "inspect", "load")), {"cmd": "dance"})
    bridge.send({"cmd": "load", "path": ""}, {"cmd": 5}, {})
    bridge.write("nonsense\n[1]\n")
    bridge.send({"cmd": "generate", "prompt": 5})
    starts = [f"{name}: no model loaded" for name in ("info", "chat", "generate", "inspect")]
    starts += ["load: missing 'path'", "unknown command: dance", "load: missing 'path'", "unknown command: 5"]
    starts += ["unknown command: ;", "parse error: ", "parse error: ", "generate: `prompt`"]
    errors = [line["error"] for line in bridge.rest()]
    assert [error.startswith(start) for error, start in zip(errors, starts, strict=True)] == [True] * len(starts), (
        errors
    )


def test_inspect_answers_that_there_is_nothing(bridge: Bridge) -> None:
    bridge.send({"cmd": "load", "path": "mock"}, {"cmd": "inspect", "prompt": "a"}, {"cmd": "inspect"}, {"cmd": "info"})
    _, inspected, missing, info = bridge.rest()
    assert list(inspected) == ["error"]
    assert missing == {"error": "inspect: missing 'prompt'"}
    assert inspected["error"].startswith("inspect: no attention data captured")
    assert info["model_type"] == "mock"


def test_errors_recommend_only_what_the_bridge_has(tmp_path: Path) -> None:
    model = write_templated_model(tmp_path / "model", "{% if %}")
    long, broken = talk(model, {"cmd": "generate", "prompt": "ka " * 9000}, chat({"role": "user", "content": "Hi"}))
    assert long["error"].startswith("generate: the prompt has ")
    assert long["error"].endswith("; shorten it")
    assert "is not valid Jinja" in broken["error"]
    assert "give a chat_template" not in broken["error"]
    with Bridge(sys.executable, str(BRIDGE), "--memory-limit", "1000") as bridge:
        bridge.send({"cmd": "load", "path": str(model)})
        (refused,) = bridge.rest()
    assert refused["error"].startswith("load: ")
    assert "are free" in refused["error"]
    assert "force" not in refused["error"]


def test_a_copy_of_the_file_elsewhere_starts_the_worker(tmp_path: Path) -> None:
    copy = shutil.copy(BRIDGE, tmp_path / "bridge.py")
    with Bridge(sys.executable, "-u", str(copy), "--mock") as bridge:
        bridge.send({"cmd": "load", "path": "mock"})
        assert bridge.rest()[0]["ok"] is True


def test_without_lmwire_each_request_is_answered_with_what_to_install(tmp_path: Path) -> None:
    copy = shutil.copy(BRIDGE, tmp_path / "bridge.py")
    requests = (
        '{"cmd":"load","path":"m"}\nnonsense\n{"cmd":"cancel"}\n\n{"cmd":"info"}\n{"cmd":"quit"}\n{"cmd":"info"}\n'
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-u", "-S", str(copy)],
        **{"input": requests, "capture_output": True, "text": True, "timeout": SECONDS, "env": environment},
        check=True,
    )
    load, parse_error, info = run.stdout.splitlines()
    # No command names the package alone: whoever owns that name on the index would run code here.
    command = f"`{sys.executable} -m pip install 'WHEEL[{extras.WORKER_EXTRA}]'`"
    built = "`make wheel` builds in a checkout of lmwire: it is not on a package index yet"
    problem = f"lmwire is not installed; install its wheel with {command}, which {built}"
    for line, start in ((load, "load"), (parse_error, "parse error"), (info, "info")):
        assert json.loads(line) == {"error": f"{start}: {problem}"}
    assert run.stderr == f"bridge.py: {problem}\n"


def test_a_missing_dependency_is_named_in_each_answer() -> None:
    hidden = "import runpy, sys; sys.modules['msgspec'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    run = subprocess.run(
        [sys.executable, "-P", "-c", hidden, str(BRIDGE)],
        **{"input": '{"cmd":"load","path":"m"}\n', "capture_output": True, "text": True, "timeout": SECONDS},
        check=True,
    )
    assert json.loads(run.stdout)["error"].startswith("load: msgspec is not installed; install it with `")
