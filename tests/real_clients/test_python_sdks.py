"""Libraries for Python: LiteLLM, Instructor and llm. tests/http tests the official ones of OpenAI and Anthropic."""

import json
from pathlib import Path

import pytest

from support.clients.answers import ANSWERED, check_person, check_text
from support.clients.installation import python_environment
from support.clients.relay import Relay
from support.clients.running import Outside, Results, run_client, run_python

pytestmark = pytest.mark.nightly

LLM_MODEL = """
- model_id: {name}
  model_name: {model}
  api_base: {url}/v1
  api_key_name: any
  supports_tools: true
  supports_schema: true
"""
WEATHER = "def weather(city: str) -> str:\n    'Get the weather of a city.'\n    return f'21 degrees in {city}'\n"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
every_provider = pytest.mark.parametrize("provider", ["openai", "anthropic", "hosted_vllm"])


@pytest.fixture(scope="module")
def litellm(environment: dict[str, str], tiny: Relay, scripted: Relay) -> Results:
    return run_python("use_litellm", environment, tiny.url, scripted.url, libraries="pinned_sdks")


@pytest.fixture(scope="module")
def instructor(environment: dict[str, str], tiny: Relay) -> Results:
    return run_python("use_instructor", environment, tiny.url, libraries="pinned_sdks")


@pytest.fixture(scope="module")
def llm_environment(environment: dict[str, str], tiny: Relay, scripted: Relay) -> dict[str, str]:
    folder = Path(environment["HOME"]) / "llm"
    folder.mkdir()
    models = [LLM_MODEL.format(name="tiny", model="builtin:tiny", url=tiny.url)]
    models += [LLM_MODEL.format(name="scripted", model="mock", url=scripted.url)]
    (folder / "extra-openai-models.yaml").write_text("".join(models))
    return environment | {"LLM_USER_PATH": str(folder)}


class TestLiteLLM:
    @every_provider
    @pytest.mark.parametrize("case", ["text", "stream"])
    def test_answers(self, litellm: Results, provider: str, case: str) -> None:
        check_text(litellm[f"{provider} {case}"])

    @every_provider
    def test_the_answer_has_its_schema(self, litellm: Results, provider: str) -> None:
        check_person(litellm[f"{provider} schema"])

    @every_provider
    def test_its_own_history_is_accepted_with_the_result_of_a_tool(self, litellm: Results, provider: str) -> None:
        assert litellm[f"{provider} tools"] == ANSWERED

    @every_provider
    def test_reasoning_is_apart_from_the_text(self, litellm: Results, provider: str) -> None:
        assert litellm[f"{provider} reasoning"] == {"text": "It is 4.", "reasoning": "2 and 2."}

    def test_a_response_is_created(self, litellm: Results) -> None:
        check_text(litellm["response"])

    def test_texts_are_embedded(self, litellm: Results) -> None:
        assert litellm["embeddings"] == [8, 8]


@pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS", "anthropic", "partial"])
def test_instructor_receives_an_object_in_mode(instructor: Results, mode: str) -> None:
    check_person(instructor[mode])


class TestLLM:
    """The `llm` command, with an entry for each server in extra-openai-models.yaml."""

    def llm(self, environment: dict[str, str], *arguments: str) -> str:
        command = [python_environment("sdks") / "llm", "--key", "any", *arguments]
        return run_client(command, environment, Path(environment["HOME"])).stdout

    @pytest.mark.parametrize("options", [[], ["--no-stream"]], ids=["stream", "whole"])
    def test_answers(self, llm_environment: dict[str, str], options: list[str]) -> None:
        assert "lmwire" in self.llm(llm_environment, "-m", "tiny", *options, "Who are you?")

    def test_the_answer_has_its_schema(self, llm_environment: dict[str, str]) -> None:
        answer = self.llm(
            llm_environment,
            "-m",
            "tiny",
            "-o",
            "temperature",
            "0",
            "--schema",
            json.dumps(PERSON),
            "Ada is 36 years old.",
        )
        check_person(json.loads(answer))

    def test_a_tool_is_called_and_its_result_is_answered(self, llm_environment: dict[str, str]) -> None:
        answer = self.llm(llm_environment, "-m", "scripted", "--functions", WEATHER, "The weather in Rome?")
        assert answer.strip() == ANSWERED


@pytest.mark.usefixtures("litellm", "instructor")
def test_the_server_refuses_nothing(tiny: Relay, scripted: Relay, outside: Outside) -> None:
    assert [*tiny.refusals(), *scripted.refusals(), *outside.asked] == []
