"""Ollama's clients for Python and Node."""

import pytest

from support.clients.answers import ANSWERED, check_person, check_text
from support.clients.relay import Relay
from support.clients.running import Outside, Results, run_node, run_python

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def python(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_python("use_ollama", environment, tiny.url, scripted.url)


@pytest.fixture(scope="module")
def node(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_node("ollama_node", environment, tiny.url, scripted.url)


@pytest.fixture(params=["python", "node"])
def results(request: pytest.FixtureRequest) -> Results:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("case", ["chat", "chat_stream", "generate"])
def test_answers(results: Results, case: str) -> None:
    check_text(results[case])


def test_the_answer_has_its_schema(results: Results) -> None:
    check_person(results["schema"])


def test_a_tool_is_called_and_its_result_is_answered(results: Results) -> None:
    assert results["tools"] == ANSWERED


def test_thinking_is_apart_from_the_text(results: Results) -> None:
    assert results["thinking"] == {"text": "It is 4.", "reasoning": "2 and 2."}


def test_texts_are_embedded(results: Results) -> None:
    assert results["embed"] == [8, 8]


def test_the_models_are_listed_and_shown(results: Results) -> None:
    assert any(name.startswith("builtin:tiny") for name in results["models"])
    assert "completion" in results["show"]


@pytest.mark.usefixtures("python", "node")
def test_the_server_refuses_nothing(tiny: Relay, scripted: Relay, outside: Outside) -> None:
    assert [*tiny.refusals(), *scripted.refusals(), *outside.asked] == []
