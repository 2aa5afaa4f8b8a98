"""opencode, started by `lmwire launch`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clients.agents import DONE, TASK, calling_server, finish_task
from support.clients.relay import Relay
from support.clients.running import Outside

pytestmark = pytest.mark.nightly

ARGUMENTS = ["run", TASK]


@pytest.fixture
def calling(tmp_path: Path) -> Iterator[Relay]:
    with calling_server(
        tmp_path, "bash", {"command": "echo hi > hello.txt", "description": "Write hello.txt"}
    ) as relay:
        yield relay


def test_its_tool_writes_the_file(calling: Relay, outside: Outside, tmp_path: Path) -> None:
    task = finish_task("opencode", ARGUMENTS, calling, outside, tmp_path)
    assert task.written() == "hi\n"
    assert DONE in task.output
    assert len(calling.sent("/v1/chat/completions")) >= 2
    assert [*calling.refusals(), *outside.asked] == []


def test_it_finishes_with_a_model_of_long_context(long_context: Relay, outside: Outside, tmp_path: Path) -> None:
    finish_task("opencode", ARGUMENTS, long_context, outside, tmp_path)
    assert long_context.sent("/v1/chat/completions")
    assert [*long_context.refusals(), *outside.asked] == []
