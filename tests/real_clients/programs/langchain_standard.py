"""LangChain's integration tests of chat models, through each API. pytest runs this file in the clients' environment.

The built-in model answers where any answer will do. SmolLM2 answers where a test looks at what the model understood: it
has 135 million parameters, and an answer of it takes a hundred times as long. The tests that neither passes say why.
"""

import os
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

URL = os.environ["LMWIRE_URL"]
TINY, SMOLLM2 = "builtin:tiny", "smollm2"
NEEDS_SMOLLM2 = {
    "test_tool_calling",
    "test_tool_calling_async",
    "test_tool_choice",
    "test_unicode_tool_call_integration",
}

ENDLESS = "a model of this size may never end a text of any length, and 200 tokens end the answer"
NO_KEYS = "the built-in model does not read the names of keys in a question"
NO_CHOICE = "Ollama's API cannot demand a call, and the model makes none of its own accord"


class Standard(ChatModelIntegrationTests):
    """The tests with the settings of every API."""

    supports_json_mode = True
    model_override_value = TINY
    fails: dict[str, str] = {}
    """Names of tests that must fail, and why."""

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {"temperature": 0, "max_tokens": 200, "max_retries": 0, "timeout": 600}

    @pytest.fixture
    def model(self, request: pytest.FixtureRequest) -> BaseChatModel:
        """Return the model of one test."""
        if reason := self.fails.get(request.node.name) or self.fails.get(request.node.originalname):
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
        needs_smollm2 = request.node.originalname in NEEDS_SMOLLM2 and self.has_tool_choice
        settings = self.standard_chat_model_params | self.chat_model_params | getattr(request, "param", {})
        return self.chat_model_class(**settings | {"model": SMOLLM2 if needs_smollm2 else TINY})


class OpenAI(Standard):
    """The tests of both of OpenAI's APIs."""

    chat_model_class = ChatOpenAI
    fails = {"test_structured_output_optional_param": ENDLESS, "test_json_mode": NO_KEYS}


class TestChatCompletions(OpenAI):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": TINY, "base_url": f"{URL}/v1", "api_key": "any", "stream_usage": True}


class TestResponses(OpenAI):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": TINY, "base_url": f"{URL}/v1", "api_key": "any", "use_responses_api": True}


class TestMessages(Standard):
    chat_model_class = ChatAnthropic
    supports_anthropic_inputs = True
    supports_json_mode = False
    fails = {
        "test_structured_output[pydantic]": ENDLESS,
        "test_structured_output_async[pydantic]": ENDLESS,
        "test_structured_output_pydantic_2_v1": ENDLESS,
    }

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": TINY, "base_url": URL, "api_key": "any"}


class TestOllama(Standard):
    chat_model_class = ChatOllama
    has_tool_choice = False
    fails = {
        "test_tool_calling[model0]": NO_CHOICE,
        "test_tool_calling[model1]": NO_CHOICE,
        "test_tool_calling_async": NO_CHOICE,
        "test_tool_calling_with_no_arguments": NO_CHOICE,
        "test_bind_runnables_as_tools": NO_CHOICE,
        "test_unicode_tool_call_integration": NO_CHOICE,
        "test_json_mode": NO_KEYS,
    }

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {"temperature": 0, "num_predict": 200}

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": TINY, "base_url": URL}
