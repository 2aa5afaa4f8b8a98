"""A switch between models that do not fit together starts one worker, and none that must fail."""

import shutil
from pathlib import Path

import pytest

from lmwire_worker.models.resolve import BUILTIN
from support.http.http_server import Server, served
from support.http.raw_http import CHAT, Answer, asked, chat_body

pytestmark = pytest.mark.slow

TINY = "builtin:tiny"
SWITCHES = 3


def ask(server: Server, model: str) -> Answer:
    return asked(server.url, "POST", CHAT, chat_body("Who are you?", model=model, max_tokens=8))


def count(server: Server, message: str) -> int:
    return sum(message in line for line in server.log)


@pytest.fixture
def twin(tmp_path: Path) -> str:
    """A copy of the built-in model, whose load takes 18.1 MB: 13.9 MB for the weights, the rest for a short answer."""
    return str(shutil.copytree(BUILTIN / "tiny", tmp_path / "twin"))


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param("24000000", marks=pytest.mark.nightly),  # below the files of both
        "30000000",  # above the files of both, below their loads
    ],
)
def test_each_switch_starts_one_worker_which_loads(memory: str, twin: str) -> None:
    with served(TINY, twin, "--memory", memory) as server:
        for number in range(SWITCHES):
            answer = ask(server, (TINY, twin)[number % 2])
            assert answer.status == 200, answer.body
        assert server.figure("lmwire_model_loaded") == 1
    assert (count(server, "has loaded"), count(server, "is not loaded")) == (SWITCHES, 0)


@pytest.mark.nightly  # test_device_memory.py shows it without a server
def test_two_models_that_fit_stay_in_memory(twin: str) -> None:
    with served(TINY, twin, "--memory", "40000000") as server:
        for number in range(SWITCHES):
            assert ask(server, (TINY, twin)[number % 2]).status == 200
    assert (count(server, "has loaded"), count(server, "is not loaded")) == (2, 0)


def test_a_load_that_was_refused_with_the_whole_budget_is_not_tried_again_at_once() -> None:
    with served(TINY, "--memory", "16000000") as server:
        answers = [ask(server, TINY) for _ in range(3)]
        assert {answer.json["error"]["code"] for answer in answers} == {"out_of_memory"}
        assert len({answer.json["error"]["message"] for answer in answers}) == 1
    assert count(server, "is not loaded") == 1
