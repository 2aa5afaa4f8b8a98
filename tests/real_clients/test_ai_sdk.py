"""Vercel's AI SDK: texts, streams with usage, objects and tools, through each of its providers."""

from typing import Any

import pytest

from support.clients.answers import ANSWERED, check_person
from support.clients.relay import Relay
from support.clients.running import Outside, Results, run_node

pytestmark = pytest.mark.nightly

PROVIDERS = ("responses", "chat", "compatible", "anthropic")
every_provider = pytest.mark.parametrize("provider", PROVIDERS)
CALLED: Any = {"text": ANSWERED, "calls": [{"toolName": "weather", "input": {"city": "Rome"}}]}


@pytest.fixture(scope="module")
def results(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_node("ai_sdk", environment, tiny.url, scripted.url)


@every_provider
def test_a_text_is_generated_with_its_usage(results: Results, provider: str) -> None:
    answer = results[f"{provider} generateText"]
    assert "lmwire" in answer["text"]
    assert answer["finishReason"] == "stop"
    assert min(answer["tokens"]) > 0


@every_provider
def test_a_text_is_streamed_with_its_usage(results: Results, provider: str) -> None:
    answer = results[f"{provider} streamText"]
    assert "lmwire" in answer["text"]
    assert answer["deltas"] > 0
    assert min(answer["tokens"]) > 0


@every_provider
def test_an_object_has_its_schema(results: Results, provider: str) -> None:
    check_person(results[f"{provider} generateObject"])


@every_provider
def test_a_tool_is_called_and_its_result_is_answered(results: Results, provider: str) -> None:
    assert results[f"{provider} tools"] == CALLED


@every_provider
def test_a_tool_is_called_in_a_stream(results: Results, provider: str) -> None:
    assert results[f"{provider} streamed tools"] == CALLED


@pytest.mark.parametrize("provider", ["compatible", "anthropic"])  # the others read only OpenAI's summaries
def test_reasoning_is_apart_from_the_text(results: Results, provider: str) -> None:
    assert results[f"{provider} reasoning"] == {"text": "It is 4.", "reasoning": "2 and 2."}


def test_the_server_refuses_nothing(results: Results, tiny: Relay, scripted: Relay, outside: Outside) -> None:
    assert [*tiny.refusals(), *scripted.refusals(), *outside.asked] == []
