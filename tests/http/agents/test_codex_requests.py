"""Requests that Codex CLI 0.169 has sent, shortened, so that a change is noticed without the program."""

import json
from pathlib import Path
from typing import Any

import pytest

from lmwire_http.http.unknown_fields import UnknownFields
from lmwire_http.openai.responses.conversation import Conversation
from lmwire_http.openai.responses.items import ItemReference, read_items
from lmwire_http.openai.responses.tools import ToolSet, read_tools
from support.http.http_server import Server
from support.http.raw_http import asked

WITH_WEB_SEARCH = ("codex_first_turn", "codex_after_patch", "codex_after_subagent")
OF_OPENAIS_MODELS = ("codex_default_model", "codex_agent_message")
"""Requests for a model of OpenAI's by name, whose tools are an item of the input."""


def recorded(name: str) -> dict[str, Any]:
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text())


def messages(name: str) -> list[Any]:
    items = read_items(recorded(name)["input"], UnknownFields({}))
    return Conversation(None, [], [item for item in items if not isinstance(item, ItemReference)]).messages


@pytest.mark.parametrize("name", WITH_WEB_SEARCH)
def test_codex_is_answered_and_only_web_search_is_left_out(scripted_server: Server, name: str) -> None:
    answer = asked(scripted_server.url, "POST", "/v1/responses", recorded(name))
    assert answer.status == 200
    assert answer.headers["x-lmwire-ignored-fields"] == "tools[].web_search"
    assert b"event: response.completed\n" in answer.body


@pytest.mark.parametrize("name", OF_OPENAIS_MODELS)
def test_codex_is_answered_by_another_model_under_the_name_of_openais(scripted_server: Server, name: str) -> None:
    answer = asked(scripted_server.url, "POST", "/v1/responses", recorded(name))
    assert answer.status == 200
    assert "x-lmwire-ignored-fields" not in answer.headers
    assert b"event: response.completed\n" in answer.body


def test_the_model_reads_a_message_of_an_agent() -> None:
    *_, message = messages("codex_agent_message")
    assert message["role"] == "user"
    assert "FINAL_ANSWER" in str(message["content"])


def test_codex_offers_its_agents_as_functions() -> None:
    tools = ToolSet({"tools": read_tools(recorded("codex_first_turn")["tools"], UnknownFields({}))}).options()["tools"]
    assert [tool["function"]["name"] for tool in tools] == [
        "exec_command",
        "view_image",
        "multi_agent_v1__close_agent",
        "multi_agent_v1__spawn_agent",
    ]


def test_the_model_reads_codexs_patch_as_a_call_with_a_result() -> None:
    *_, called, result = messages("codex_after_patch")
    [call] = called["tool_calls"]
    assert (call["name"], list(call["arguments"])) == ("apply_patch", ["input"])
    assert call["arguments"]["input"].startswith("*** Begin Patch")
    assert result["tool_call_id"] == call["id"] and "Success" in result["content"]


def test_the_model_reads_codexs_call_of_an_agent_by_the_functions_name() -> None:
    *_, called, result = messages("codex_after_subagent")
    [call] = called["tool_calls"]
    assert call["name"] == "multi_agent_v1__spawn_agent"
    assert "agent_id" in result["content"]
