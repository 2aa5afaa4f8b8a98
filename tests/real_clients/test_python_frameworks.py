"""Frameworks for Python: OpenAI's Agents SDK, Pydantic AI, smolagents and LangChain."""

from unittest.mock import ANY

import pytest

from support.clients.answers import ANSWERED, check_person, check_text
from support.clients.relay import Relay
from support.clients.running import Outside, Results, run_python

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def openai_agents(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_python("use_openai_agents", environment, tiny.url, scripted.url)


@pytest.fixture(scope="module")
def pydantic_ai(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_python("use_pydantic_ai", environment, tiny.url, scripted.url)


@pytest.fixture(scope="module")
def smolagents(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_python("use_smolagents", environment, tiny.url, scripted.url)


@pytest.fixture(scope="module")
def langchain(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_python("use_langchain", environment, tiny.url, scripted.url)


@pytest.mark.parametrize("api", ["responses", "chat"])
class TestOpenAIAgents:
    @pytest.mark.parametrize("case", ["text", "stream"])
    def test_answers(self, openai_agents: Results, api: str, case: str) -> None:
        check_text(openai_agents[f"{api} {case}"])

    def test_the_output_has_its_type(self, openai_agents: Results, api: str) -> None:
        check_person(openai_agents[f"{api} schema"])

    def test_a_tool_is_called_and_its_result_is_answered(self, openai_agents: Results, api: str) -> None:
        assert openai_agents[f"{api} tools"] == ANSWERED

    def test_a_stream_has_reasoning_a_call_and_a_message(self, openai_agents: Results, api: str) -> None:
        expected = ["reasoning_item", "tool_call_item", "tool_call_output_item", "message_output_item"]
        assert openai_agents[f"{api} streamed_tools"] == expected

    def test_a_handoff_goes_to_the_other_agent(self, openai_agents: Results, api: str) -> None:
        assert openai_agents[f"{api} handoff"] == "Guide"


class TestPydanticAI:
    @pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
    @pytest.mark.parametrize("case", ["text", "stream"])
    def test_answers(self, pydantic_ai: Results, api: str, case: str) -> None:
        check_text(pydantic_ai[f"{api} {case}"])

    @pytest.mark.parametrize("api", ["chat", "responses"])
    def test_the_output_has_its_schema(self, pydantic_ai: Results, api: str) -> None:
        check_person(pydantic_ai[f"{api} schema"])

    @pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
    def test_the_output_comes_through_a_required_tool(self, pydantic_ai: Results, api: str) -> None:
        check_person(pydantic_ai[f"{api} tool_schema"])

    @pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
    def test_a_tool_is_called_and_its_result_is_answered(self, pydantic_ai: Results, api: str) -> None:
        assert pydantic_ai[f"{api} tools"] == ANSWERED

    @pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
    def test_a_model_that_is_free_to_call_calls_a_tool_and_reads_its_result(
        self, pydantic_ai: Results, api: str
    ) -> None:
        assert pydantic_ai[f"{api} chosen_tool"]["cities"] == ["Rome"]
        assert "21 degrees in Rome" in pydantic_ai[f"{api} chosen_tool"]["text"]


class TestSmolagents:
    def test_a_tool_is_called_and_its_result_is_answered(self, smolagents: Results) -> None:
        assert smolagents["scripted"] == {"answer": ANSWERED, "state": "success", "tokens": ANY}

    def test_a_real_model_comes_to_a_final_answer(self, smolagents: Results) -> None:
        assert smolagents["tiny"]["state"] == "success"
        assert smolagents["tiny"]["tokens"] > 0


class TestLangChain:
    @pytest.mark.parametrize("api", ["chat", "responses"])
    @pytest.mark.parametrize("case", ["text", "stream"])
    def test_answers(self, langchain: Results, api: str, case: str) -> None:
        check_text(langchain[f"{api} {case}"])

    @pytest.mark.parametrize("api", ["chat", "responses"])
    def test_the_output_has_its_schema(self, langchain: Results, api: str) -> None:
        check_person(langchain[f"{api} schema"])

    @pytest.mark.parametrize("api", ["chat", "responses"])
    def test_a_tool_is_called_and_its_result_is_answered(self, langchain: Results, api: str) -> None:
        assert langchain[f"{api} tools"] == ANSWERED

    def test_a_prompt_is_completed(self, langchain: Results) -> None:
        assert langchain["completion"].split() == ["one", "two", "three"]

    def test_texts_are_embedded(self, langchain: Results) -> None:
        assert langchain["embeddings"] == [8, 8]


@pytest.mark.usefixtures("openai_agents", "pydantic_ai", "smolagents", "langchain")
def test_the_server_refuses_nothing(tiny: Relay, scripted: Relay, outside: Outside) -> None:
    assert [*tiny.refusals(), *scripted.refusals(), *outside.asked] == []
