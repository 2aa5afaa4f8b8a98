"""Aider, started by `lmwire launch`. It calls no tools: it reads files from the text of the answer."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clients.agents import TASK, finish_task, scenario_server
from support.clients.relay import Relay
from support.clients.running import Outside
from support.process.programs import refuse

pytestmark = pytest.mark.nightly

ARGUMENTS = ["--yes-always", "--no-gitignore", "--no-check-update", "--no-show-release-notes", "--analytics-disable"]
ARGUMENTS += ["--edit-format", "whole", "--message", TASK, "hello.txt"]
# Otherwise it downloads the prices of models.
SETTINGS = {".aider/caches/model_prices_and_context_window.json": json.dumps({"none": {}})}
ANSWER = "hello.txt\n```\nhi\n```\n"


@pytest.fixture(scope="module", autouse=True)
def supported() -> None:
    if sys.version_info >= (3, 13):
        refuse("aider needs a Python older than 3.13")


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Relay]:
    """Yield a server whose worker answers with a file in aider's format, and describes the commit after it."""
    rules = [{"match": {"last_message": "hello.txt"}, "times": 1, "reply": {"text": ANSWER}}]
    with scenario_server(tmp_path, [*rules, {"reply": {"text": "feat: greet"}}]) as relay:
        yield relay


def test_it_writes_and_commits_the_file(writing: Relay, outside: Outside, tmp_path: Path) -> None:
    task = finish_task("aider", ARGUMENTS, writing, outside, tmp_path, SETTINGS)
    assert task.written() == "hi\n"
    assert "feat: greet" in task.output
    assert len(writing.sent("/v1/chat/completions")) >= 2
    assert [*writing.refusals(), *outside.asked] == []


def test_it_finishes_with_a_model_of_long_context(long_context: Relay, outside: Outside, tmp_path: Path) -> None:
    finish_task("aider", ARGUMENTS, long_context, outside, tmp_path, SETTINGS)
    assert long_context.sent("/v1/chat/completions")
    assert [*long_context.refusals(), *outside.asked] == []
