"""Errors of Anthropic's API: the envelope, the types and the client's own field names."""

from typing import Any

import anthropic
import httpx2
import pytest

from support.http.anthropic_http import MODEL, client, user
from support.http.http_server import MOCK, Server, served
from support.process.worker_process import SECONDS


def refusal(server: Server, **fields: Any) -> str:
    body = {"model": MODEL, "max_tokens": 9, "messages": [user("hello")], **fields}
    body = {name: value for name, value in body.items() if value is not ...}
    response = httpx2.post(f"{server.url}/v1/messages", json=body, timeout=SECONDS)
    assert response.status_code == 400, response.text
    error = response.json()
    assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
    assert error["request_id"] == response.headers["x-request-id"]
    return error["error"]["message"].replace("`", "")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": ...}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "So"}]}, "messages"),
        ({"messages": [user([])]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [user([{"type": "video"}])]}, "messages[0].content[0].type"),
        ({"messages": [user([{"type": "text"}])]}, "messages[0].content[0].text"),
        (
            {"messages": [user([{"type": "document", "source": {"type": "base64", "data": ""}}])]},
            "messages[0].content[0].source.type",
        ),
        ({"temperature": 1.5}, "temperature"),
        ({"top_k": -2}, "top_k"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"container": "c"}, "container"),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "look"}]}, "tools[0].input_schema"),
        ({"tools": [{"name": "a", "input_schema": {}}, {"name": "a", "input_schema": {}}]}, "tools[1].name"),
        (
            {
                "tools": [{"type": "web_search_20250305", "name": "web_search"}],
                "tool_choice": {"type": "tool", "name": "web_search"},
            },
            "tool_choice.name",
        ),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"output_config": {"format": {"type": "text"}}}, "output_config.format.type"),
        (
            {"messages": [user("x"), {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}]},
            "messages[1].content[0]",
        ),
    ],
)
def test_a_wrong_field_is_named_as_the_client_wrote_it(scripted_server: Server, fields: Any, named: str) -> None:
    assert refusal(scripted_server, **fields).startswith(f"{named}: ")


@pytest.mark.slow
def test_a_schema_that_cannot_be_enforced_is_named_in_the_clients_field(tiny_server: Server) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": "one"}}}
    output = {"format": {"type": "json_schema", "schema": schema}}
    message = refusal(tiny_server, model="builtin:tiny", output_config=output)
    assert message.startswith("output_config.format.schema")


@pytest.mark.slow
def test_a_strict_server_refuses_thinking_that_the_model_cannot_do() -> None:
    template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with served("builtin:tiny", "--request-templates", "--strict") as server:
        message = refusal(server, model="builtin:tiny", chat_template=template, thinking=thinking)
    assert message.startswith("thinking: this model has no reasoning")


@pytest.mark.slow
def test_a_strict_server_refuses_tools_that_it_does_not_run_and_edits_that_it_does_not_make() -> None:
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]
    with served("--worker", MOCK, "--strict") as server:
        message = refusal(server, tools=[{"type": "web_search_20250305", "name": "web_search"}])
        assert message.startswith("tools[0]: the type web_search_20250305 is not served here")
        message = refusal(server, context_management={"edits": edits})
        assert message.startswith("context_management.edits[1]: the type clear_tool_uses_20250919 is not served")


@pytest.mark.parametrize(
    ("content", "error"),
    [("busy", anthropic.RateLimitError), ("breaks at once", anthropic.InternalServerError)],
)
def test_failures_of_the_worker_are_the_clients_own_errors(
    scripted_server: Server, content: str, error: type[anthropic.APIStatusError]
) -> None:
    with pytest.raises(error) as failed:
        client(scripted_server).messages.create(model=MODEL, max_tokens=9, messages=[user(content)])
    body: Any = failed.value.body
    assert failed.value.request_id == body["request_id"]


@pytest.mark.slow
def test_an_unknown_model_is_not_found(tiny_server: Server) -> None:
    with pytest.raises(anthropic.NotFoundError):
        client(tiny_server).messages.create(model="no/such-model", max_tokens=9, messages=[user("hello")])


def test_a_body_that_is_not_json_is_refused(scripted_server: Server) -> None:
    response = httpx2.post(f"{scripted_server.url}/v1/messages", content=b"{", timeout=SECONDS)
    assert response.status_code == 400
    assert "is not JSON" in response.json()["error"]["message"]
