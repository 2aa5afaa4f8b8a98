"""Custom tools and namespaces of /v1/responses, with OpenAI's own client."""

from typing import Any

import pytest
from openai import OpenAI

from support.http.http_server import MOCK, Server, served
from support.http.raw_http import asked

PATCH: Any = {"type": "custom", "name": "apply_patch", "description": "Edit files."}
AGENTS: Any = {
    "type": "namespace",
    "name": "agents",
    "description": "Helpers.",
    "tools": [{"type": "function", "name": "spawn", "parameters": {"type": "object"}}],
}
TEXT = '*** Begin Patch\n+"hi"\n*** End Patch\n'


@pytest.fixture(scope="module")
def client(scripted_server: Server) -> OpenAI:
    return OpenAI(base_url=f"{scripted_server.url}/v1", api_key="any", max_retries=0)


def ask(client: OpenAI, input: Any, **options: Any) -> Any:
    return client.responses.create(model="mock", input=input, tools=[PATCH, AGENTS], **options)


def test_a_custom_tool_is_called_with_its_text(client: OpenAI) -> None:
    response = ask(client, "patch the file")
    message, call = response.output
    assert message.type == "message"
    assert (call.type, call.name, call.input, call.call_id) == ("custom_tool_call", "apply_patch", TEXT, "call_patch")
    assert [tool.type for tool in response.tools] == ["custom", "namespace"]


def test_a_custom_call_is_streamed_with_events_of_its_own(client: OpenAI) -> None:
    events = [event for event in ask(client, "patch the file", stream=True) if "output_text" not in event.type]
    names = [event.type.removeprefix("response.") for event in events]
    start = names.index("custom_tool_call_input.delta") - 1
    assert names[start:] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]
    added, delta, done, item, _ = events[start:]
    assert (added.item.input, delta.delta, done.input, item.item.input) == ("", TEXT, TEXT, TEXT)
    assert {delta.item_id, done.item_id} == {item.item.id}


def test_a_custom_call_that_was_cut_off_has_no_input_to_run(client: OpenAI) -> None:
    response = ask(client, "patch half", max_output_tokens=2)
    [call] = response.output
    assert (response.status, call.status) == ("incomplete", "incomplete")
    assert call.input.startswith('{"input"')


def test_a_call_of_a_namespace_has_its_own_name_and_the_namespace(client: OpenAI) -> None:
    [call] = ask(client, "start an agent").output
    assert (call.type, call.name, call.namespace) == ("function_call", "spawn", "agents")
    [event] = [
        event
        for event in ask(client, "start an agent", stream=True)
        if event.type == "response.function_call_arguments.done"
    ]
    assert event.name == "spawn"


def test_a_conversation_goes_on_from_a_custom_call(client: OpenAI) -> None:
    called = ask(client, "patch the file")
    result = {"type": "custom_tool_call_output", "call_id": "call_patch", "output": "think aloud"}
    assert ask(client, [result], previous_response_id=called.id).output_text == "It is 4."
    spelt_out = [{"role": "user", "content": "patch the file"}, *called.to_dict()["output"], result]
    answered = ask(client, spelt_out)
    assert answered.output_text == "It is 4."
    listed = client.responses.input_items.list(answered.id, order="asc").data
    assert [item.type for item in listed] == ["message", "message", "custom_tool_call", "custom_tool_call_output"]


def test_tools_in_the_input_are_offered_and_stay_offered(client: OpenAI) -> None:
    tools: Any = {"type": "additional_tools", "role": "developer", "tools": [PATCH, AGENTS]}
    first = client.responses.create(
        model="mock",
        input=[tools, {"role": "user", "content": "patch the file"}],
    )
    assert [item.type for item in first.output] == ["message", "custom_tool_call"]
    second = client.responses.create(model="mock", input="start an agent", previous_response_id=first.id)
    assert [getattr(item, "namespace", None) for item in second.output] == ["agents"]


def test_hosted_tools_and_their_items_are_named_in_the_response_and_the_log(scripted_server: Server) -> None:
    items = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"role": "user", "content": "think aloud"},
    ]
    body = {"model": "mock", "input": items, "tools": [{"type": "image_generation"}, PATCH]}
    answer = asked(scripted_server.url, "POST", "/v1/responses", body)
    assert answer.status == 200
    assert answer.headers["x-lmwire-ignored-fields"] == "tools[].image_generation, input[].web_search_call"
    scripted_server.wait_for_line(r"field=tools\[\]\.image_generation")
    assert [tool["type"] for tool in answer.json["tools"]] == ["custom"]


def test_a_strict_server_refuses_hosted_tools() -> None:
    with served("--strict", "--worker", MOCK) as server:
        body = {"model": "mock", "input": "hello", "tools": [PATCH, {"type": "web_search"}]}
        refused = asked(server.url, "POST", "/v1/responses", body)
        assert (refused.status, refused.json["error"]["param"]) == (400, "tools[1]")


def test_a_background_response_is_refused_with_advice(scripted_server: Server) -> None:
    body = {"model": "mock", "input": "hello", "background": True}
    refused = asked(scripted_server.url, "POST", "/v1/responses", body)
    assert refused.status == 400
    assert "stream" in refused.json["error"]["message"]
