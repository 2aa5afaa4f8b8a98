"""Rows are shared between requests: one that wants many of them does not hold up those that want few."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.process.worker_process import Event, WorkerProcess
from support.process.worker_thread import MockOnThread
from support.runners.stepped_engine import ROWS
from support.runners.stepped_turns import Turns

MOCK_ROWS = 64
MANY = 16
HOUR_MS = 3_600_000

SCENARIO = {
    "rules": [
        {"match": {"prompt": "^wait"}, "reply": {"tokens": ["on"], "then": "wait"}},
        {
            "match": {"prompt": "^all but one end"},
            "reply": {
                "choices": [
                    {"tokens": ["on", {"text": "on", "delay_ms": HOUR_MS}]},
                    *[{"tokens": ["over"]}] * (MANY - 1),
                ]
            },
        },
    ]
}


def generation(id: str, prompt: str, n: int = 1, **fields: Any) -> Event:
    return {"id": id, "cmd": "generate", "prompt": prompt, "n": n, **fields}


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[WorkerProcess]:
    """A mock worker."""
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps(SCENARIO))
    with MockOnThread("--scenario", str(scenario)) as worker:
        worker.load("mock")
        yield worker


def fill(worker: WorkerProcess, prompt: str) -> None:
    """Take all rows with requests for many choices."""
    running = [f"running {number}" for number in range(MOCK_ROWS // MANY)]
    worker.send(*(generation(id, prompt, MANY) for id in running))
    for id in running:
        worker.first_token(id)


@pytest.mark.slow
def test_a_request_for_one_answer_is_next_though_others_for_many_came_first(worker: WorkerProcess) -> None:
    fill(worker, "wait")
    worker.send(*(generation(f"waiting {number}", "wait", MANY) for number in range(10)))
    worker.send(generation("small", "hello"), {"id": "cancel", "cmd": "cancel", "target": "running 0"})
    assert worker.terminal("small")["finish_reason"] == "stop"
    assert worker.call({"id": "ping", "cmd": "ping"})["queued"] >= 9


@pytest.mark.slow
def test_an_answer_that_has_ended_leaves_its_row_to_others(worker: WorkerProcess) -> None:
    fill(worker, "all but one end")
    worker.send(generation("small", "hello"))
    assert worker.terminal("small")["finish_reason"] == "stop"
    assert worker.of("running 0")[-1]["event"] == "token"


def test_requests_for_as_many_answers_start_in_their_order(turns: Turns) -> None:
    turns.generate("a", "b", "c", "d", "e")
    turns.step()
    for _ in range(3):
        turns.step("first")
    assert turns.started == ["a", "b", "c", "d", "e"]


def test_a_request_for_many_choices_is_not_overtaken_for_ever(turns: Turns) -> None:
    turns.generate("a", "b")
    turns.generate("many", n=ROWS)
    turns.step()
    for number in range(20):
        turns.generate(f"small {number}")
        turns.step("first")
    assert turns.started[:3] == ["a", "b", "small 0"]
    assert "many" in turns.started


def test_no_request_overtakes_a_load(turns: Turns) -> None:
    turns.generate("a", "b")
    turns.generate("many", n=ROWS)
    turns.send({"id": "load", "cmd": "load", "path": "other"})
    turns.generate("small")
    turns.step()
    turns.step("all")
    turns.step("all")
    assert turns.started == ["a", "b", "many", "other"]
