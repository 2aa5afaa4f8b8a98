"""What a conversation remembers, seen by a worker that answers with all that it was told."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmwire
from lmwire.command.chat.talk import Talk

REPEATING_WORKER = """
import json, sys

for line in sys.stdin:
    request = json.loads(line)
    done = {"event": "done", "id": request["id"]}
    if request["cmd"] == "hello":
        limits = dict.fromkeys(("line_in_bytes", "line_out_bytes", "requests", "queued_bytes"), 1)
        done |= {"protocol": 1, "worker": "repeating", "pid": 1, "engines": [], "features": [], "limits": limits}
    elif request["cmd"] == "chat" and request["messages"][-1]["content"] == "refuse":
        done |= {"event": "error", "error": "refused", "code": "invalid_request", "retryable": False}
    elif request["cmd"] == "chat":
        told = ", ".join(f"{message['role']}: {message['content']}" for message in request["messages"])
        print(json.dumps({"event": "token", "id": request["id"], "token": f"({told})", "token_ids": [1]}))
        usage = {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1}
        timings = {"queued_ms": 0, "total_ms": 0}
        done |= {"finish_reason": "stop", "seed": 1, "usage": usage, "timings": timings}
    print(json.dumps(done), flush=True)
    if request["cmd"] == "quit":
        break
"""


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    worker = tmp_path / "worker.py"
    worker.write_text(REPEATING_WORKER)
    with Talk([sys.executable, str(worker)], "Be brief.", {}) as talk:
        yield talk


def answer(talk: Talk, prompt: str, capsys: pytest.CaptureFixture[str]) -> str:
    talk.answer(prompt)
    return capsys.readouterr().out


def test_every_turn_tells_the_turns_before(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    first = "(system: Be brief., user: one)"
    assert answer(talk, "one", capsys) == f"{first}\n"
    assert answer(talk, "two", capsys) == f"(system: Be brief., user: one, assistant: {first}, user: two)\n"


def test_forgetting_keeps_the_system_message(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    answer(talk, "one", capsys)
    talk.forget()
    assert answer(talk, "two", capsys) == "(system: Be brief., user: two)\n"


def test_a_refused_turn_leaves_no_trace(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(lmwire.RequestFailed):
        talk.answer("refuse")
    assert answer(talk, "two", capsys) == "(system: Be brief., user: two)\n"
