"""The official clients of OpenAI and Anthropic for Node."""

import pytest

from support.clients.answers import ANSWERED, check_person, check_text
from support.clients.relay import Relay
from support.clients.running import Outside, Results, run_node

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def openai(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_node("openai_node", environment, tiny.url, scripted.url)


@pytest.fixture(scope="module")
def anthropic(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_node("anthropic_node", environment, tiny.url, scripted.url)


@pytest.mark.parametrize("case", ["chat", "response"])
def test_openai_reads_an_answer(openai: Results, case: str) -> None:
    check_text(openai[case])


@pytest.mark.parametrize("case", ["stream", "response stream"])
def test_openai_reads_a_stream(openai: Results, case: str) -> None:
    check_text(openai[case])
    assert openai[case]["deltas"] > 0


def test_openai_parses_an_answer_with_a_schema(openai: Results) -> None:
    check_person(openai["parse"])


@pytest.mark.parametrize("case", ["tools", "response tools"])
def test_openai_calls_a_tool_and_returns_its_result(openai: Results, case: str) -> None:
    assert openai[case] == ANSWERED


def test_openai_lists_the_models(openai: Results) -> None:
    assert "builtin:tiny" in openai["models"]


def test_anthropic_reads_an_answer(anthropic: Results) -> None:
    check_text(anthropic["message"])
    assert anthropic["message"]["reason"] == "end_turn"


def test_anthropic_reads_a_stream(anthropic: Results) -> None:
    check_text(anthropic["stream"])
    assert anthropic["stream"]["deltas"] > 0


def test_anthropic_counts_tokens(anthropic: Results) -> None:
    assert anthropic["count"] > 0


def test_anthropic_calls_a_tool_and_returns_its_result(anthropic: Results) -> None:
    assert anthropic["tools"] == ANSWERED


def test_anthropic_reads_thinking(anthropic: Results) -> None:
    assert anthropic["thinking"] == {"text": "It is 4.", "thinking": "2 and 2."}


@pytest.mark.usefixtures("openai", "anthropic")
def test_the_server_refuses_only_message_threads(tiny: Relay, scripted: Relay, outside: Outside) -> None:
    # Anthropic's tool runner asks for a thread first. The error's code makes it send whole conversations.
    assert len(scripted.refusals()) == 1
    assert '"thread":{"type":"create"}' in scripted.refusals()[0]
    assert [*tiny.refusals(), *outside.asked] == []
