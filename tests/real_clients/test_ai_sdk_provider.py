"""lmwire's provider for Vercel's AI SDK in the newest SDK, whose own version of the specification is higher."""

import os

import pytest

from support.clients.answers import check_person, check_text
from support.clients.running import Results, run_node
from support.process.lmwire_command import LMWIRE, REPOSITORY

PROVIDER = REPOSITORY / "clients" / "node-ai-sdk" / "dist" / "src" / "index.js"


@pytest.fixture(scope="module")
def results(environment: dict[str, str]) -> Results:
    if not PROVIDER.exists() and os.environ.get("CI") != "true":
        pytest.skip("clients/node-ai-sdk is not built; make node builds it")
    return run_node("ai_sdk_provider", environment, PROVIDER.as_uri(), LMWIRE)


def test_a_text_is_streamed_with_its_usage(results: Results) -> None:
    check_text(results["streamText"])


def test_an_object_has_its_schema(results: Results) -> None:
    check_person(results["generateObject"])


def test_a_required_tool_is_called(results: Results) -> None:
    (called,) = results["tools"]
    city = called["input"]["city"]
    assert called == {"toolName": "weather", "input": {"city": city}, "output": f"21 degrees in {city}"}
